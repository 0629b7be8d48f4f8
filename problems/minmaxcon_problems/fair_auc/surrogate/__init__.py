"""The convex surrogates of the paper: quadratic pairwise losses as min-max constraints."""

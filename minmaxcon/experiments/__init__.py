"""What becomes of solves: result records, saved models, figures; each module is imported where it is needed."""

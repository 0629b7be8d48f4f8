"""
A certificate closes
====================

Every query of the level-set method moves one of two bounds: the objective of the best feasible point, or the lower bound
that the dual variables prove. The status and ``solution.certificate`` report their distance
(:doc:`../../theory/sfls`). The optimum that a conic solver finds always lies between them.
"""

import matplotlib.pyplot as plt

import minmaxcon as mm
from minmaxcon.reference import solve_exact

problem = mm.load_problem("worst_group")
best = solve_exact(problem).objective

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, oracle in zip(axes, (mm.MirrorProx(), mm.SMD()), strict=True):
    solution = mm.solve(problem, mm.SFLS(oracle=oracle, tolerance=1e-3), seed=0, budget=20_000)
    trace = solution.trace
    ax.step(trace["steps"], trace["objective"], where="post", label="best feasible objective")
    ax.step(trace["steps"], trace["lower"], where="post", label="proved lower bound")
    ax.axhline(best, color="k", linestyle=":", label="conic solver")
    ax.set(xscale="log", xlabel="steps", title=type(oracle).__name__)
    print(type(oracle).__name__, solution)
axes[0].set(ylabel="$f_0$", ylim=(best - 0.03, best + 0.03))
axes[0].legend(frameon=False)

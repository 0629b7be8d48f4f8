"""
Feasible and infeasible paths
=============================

Methods for constrained problems differ in the point that they return if you stop them. The level-set method keeps every point feasible;
averages of primal-dual methods become feasible only in the limit (:doc:`../../theory/rivals`). The figure shows the points of each method on its
way, on one problem with the same number of samples.
"""

import matplotlib.pyplot as plt

import minmaxcon as mm
from minmaxcon.results import compare

problem = mm.load_problem("robust_diet", nutrients=("energy", "protein", "calcium"), samples=200)
names = {
    "SFLS": "auto",
    "ConEx": "conex",
    "primal-dual": "primal_dual",
}
found = compare(problem, names, samples=400_000)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for entry, marker in zip(found.entries, "osD", strict=True):
    path = entry.path[1:]
    samples = [point["samples"] for point in path]
    left.plot(samples, [point["violation"] for point in path], marker=marker, markersize=4, label=entry.solver)
    right.plot(samples, [abs(point["relative_gap"]) for point in path], marker=marker, markersize=4, label=entry.solver)
    print(f"{entry.solver:22} {entry.infeasible:3} of {entry.checkpoints:3} points infeasible")
left.axhspan(-1, 0, color="C2", alpha=0.1)
left.set(xlabel="samples", xscale="log", ylabel="largest $f_i - b_i$", yscale="symlog", ylim=(-0.1, None))
left.set_yscale("symlog", linthresh=1e-3)
right.set(xlabel="samples", xscale="log", ylabel="relative gap, in size", yscale="log")
left.legend(frameon=False)

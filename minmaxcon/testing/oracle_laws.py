"""What an oracle must satisfy: bounds on the known H, and estimates that are what they say."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import to_numpy
from minmaxcon.core import Estimate, LevelProblem, MinMaxProblem
from minmaxcon.core.lower import lower_bound
from minmaxcon.errors import Unsupported
from minmaxcon.geometry import InnerBlock
from minmaxcon.testing.harness import Fault, Skip, Suite, apart, at, reference, require, shown
from minmaxcon.testing.trials import OracleTrial

__all__ = ["ORACLE", "largest_level", "require_valid"]

ORACLE = Suite()

_AVERAGES = "theory/smd.html#averages"
_UPPER = "theory/smd.html#the-upper-bound-u"
_LOWER = "theory/smd.html#the-lower-bound-d"
_LEVEL = "theory/level_set.html"
_PAGE = "howto/conformance.html#oracles"


def _known(problem: MinMaxProblem, levels: Any) -> Any:
    try:
        return np.asarray(reference().level_value(problem, levels))
    except Unsupported as reason:
        raise Skip(str(reason)) from None


def largest_level(level: LevelProblem, x: Any) -> Any:
    r"""Return :math:`\max_i f_i(x) + d_x(x) - b_i` at x (R, d), an ndarray (R,), by a pass over finite data."""
    return (level.values(x) - level.bounds).max(1)


def _spread(problem: MinMaxProblem, levels: Any, known: Any) -> Any:
    return largest_level(problem.at_level(levels), problem.start_point(levels.size)) - known


def require_valid(level: LevelProblem, found: Estimate) -> None:
    """Raise a fault unless an estimate has its shapes, x lies in X and the duals lie in their sets."""
    runs, k = level.bounds.shape
    dual = level.dual()
    shapes = {
        "x": (found.x, (runs, level.primal.dimension)),
        "weights": (found.weights, (runs, k)),
        "scaled": (found.scaled, (runs, dual.inner_dimension)),
        "upper": (found.upper, (runs,)),
        "values": (found.values, (runs, k)),
    }
    for name, (array, need) in shapes.items():
        require(tuple(array.shape) == need, f"{name} has shape {tuple(array.shape)}, not {need}.")
        require(np.isfinite(to_numpy(array)).all(), f"{name} is not finite.")
    small = 1e-6 if found.x.dtype.itemsize == 8 else 1e-4
    require(np.all(to_numpy(level.primal.contains(found.x, small))), "x lies outside X.", shown(x=found.x[0]))
    y, a = (np.asarray(to_numpy(part), dtype=np.float64) for part in (found.weights, found.scaled))
    off = np.maximum(np.abs(y.sum(1) - 1.0), -y.min(1))
    worst = at(off, 1e-5)
    if worst is not None:
        raise Fault("weights are no point of the simplex.", shown(y=y[worst]))
    begin = 0
    for i, block in enumerate(dual.blocks):
        if block is not None:
            _require_inside(block, i, y[:, i], a[:, begin : begin + block.dimension])
            begin += block.dimension


def _require_inside(block: InnerBlock, i: int, weight: Any, part: Any) -> None:
    """Raise a fault unless <a_i, v> <= y_i max_A <alpha, v> in every direction that is tried."""
    p = block.dimension
    drawn = np.random.default_rng(0).standard_normal((20, p))
    both = np.concatenate([drawn, np.eye(p), np.ones((1, p)), part])
    length = np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-12)
    v = np.concatenate([both / length, -both / length])
    edge = np.asarray(block.maximize(1e9 * v)[0])  # so long that the penalty no longer counts
    excess = part @ v.T - weight[:, None] * np.vecdot(v, edge)
    worst = at(excess, 1e-5 * (1.0 + float(block.radius)))
    if worst is not None:
        j, d = divmod(worst, len(v))
        example = shown(y_i=weight[j], a_i=part[j], direction=v[d])
        raise Fault(f"scaled lies outside y_{i} A_{i}, by {excess[j, d]:.3g} along a direction.", example)


@ORACLE.check(
    "x lies in X, weights in the simplex, scaled in y_i A_i; upper is the largest of values; nothing failed.", _PAGE
)
def estimate(trial: OracleTrial, _rng: np.random.Generator) -> str:
    for problem, levels, found in (*trial.still, (trial.problem, *trial.noisy)):
        require_valid(problem.at_level(levels), found)
        top = np.asarray(found.values).max(1)
        seen = "upper is not the largest of values."
        require(apart(top, found.upper) <= 1e-6, seen, shown(values=found.values[0], upper=found.upper))
        require(len(found.failure) == levels.size, f"failure has {len(found.failure)} entries for {levels.size} runs.")
        require(not any(found.failure), f"it reports a failure: {next(filter(None, found.failure), '')}")
    return f"3 levels with noise, {3 * len(trial.still)} without"


@ORACLE.check("Without noise upper >= H(r): the bound is valid at every level.", _UPPER)
def upper_bound(trial: OracleTrial, _rng: np.random.Generator) -> str:
    def on(problem: MinMaxProblem, levels: Any, found: Estimate) -> str:
        known = _known(problem, levels)
        worst = at(known - np.asarray(found.upper), 1e-6)
        if worst is not None:
            seen = f"U = {found.upper[worst]:.6g} < {known[worst]:.6g} = H."
            raise Fault(seen, shown(r=levels[worst], x=found.x[worst], y=found.weights[worst]))
        return f"U - H between {np.min(found.upper - known):.2g} and {np.max(found.upper - known):.2g}"

    return trial.each(on)


@ORACLE.check("Without noise upper >= max_i f_i(x) - b_i: x and U are averages with the same weights.", _AVERAGES)
def upper_bounds_point(trial: OracleTrial, _rng: np.random.Generator) -> str:
    def on(problem: MinMaxProblem, levels: Any, found: Estimate) -> str:
        reached = largest_level(problem.at_level(levels), found.x)
        small = 1e-7 if found.x.dtype.itemsize == 8 else 1e-4
        worst = at(reached - np.asarray(found.upper), small * (1.0 + float(np.abs(reached).max())))
        if worst is not None:
            seen = f"U = {found.upper[worst]:.6g}, but the point that is returned has {reached[worst]:.6g}."
            raise Fault(seen, shown(r=levels[worst], x=found.x[worst]))
        return f"U - P(x) at least {np.min(found.upper - reached):.2g}"

    return trial.each(on)


@ORACLE.check("With a proximal term, upper >= H and >= max_i f_i(x) + d_x(x) - b_i, without noise.", _UPPER)
def proximal(trial: OracleTrial, _rng: np.random.Generator) -> str:
    def on(plain: MinMaxProblem, _levels: Any, _found: Estimate) -> str:
        problem = plain.with_proximal(to_numpy(plain.start_point(1))[0], 0.5)
        levels = trial.levels(problem)
        found, known = trial.query(problem, levels), _known(problem, levels)
        for name, below in (("H", known), ("max_i f_i + d_x - b_i", largest_level(problem.at_level(levels), found.x))):
            worst = at(below - np.asarray(found.upper), 1e-6 if found.x.dtype.itemsize == 8 else 1e-4)
            if worst is not None:
                seen = f"U = {found.upper[worst]:.6g} < {below[worst]:.6g} = {name}."
                raise Fault(seen, shown(r=levels[worst], x=found.x[worst]))
        return "3 levels"

    return trial.each(on)


@ORACLE.check("The bound from below that the returned duals give is at most H.", _LOWER)
def lower(trial: OracleTrial, _rng: np.random.Generator) -> str:
    gaps = []
    for problem, levels, found in (*trial.still, (trial.problem, *trial.noisy)):
        level = problem.at_level(levels)
        if level.modulus > 0:
            continue
        known = _known(problem, levels)
        bound = lower_bound(level, found.weights, found.scaled, found.x)
        worst = at(bound - known, 1e-6 * (1.0 + float(np.abs(known).max())))
        if worst is not None:
            seen = f"{bound[worst]:.6g} > {known[worst]:.6g} = H."
            raise Fault(seen, shown(r=levels[worst], y=found.weights[worst], a=found.scaled[worst]))
        gaps.append(float((known - bound).max()))
    return f"H exceeds it by at most {max(gaps, default=0.0):.2g}"


@ORACLE.check(
    "H less that bound is at most half of the start's gap P(x_0) - D(y_0), on average of levels, no noise.", _LOWER
)
def tightness(trial: OracleTrial, _rng: np.random.Generator) -> str:
    def on(problem: MinMaxProblem, levels: Any, found: Estimate) -> str:
        level = problem.at_level(levels)
        if level.modulus > 0:
            raise Skip("it is not declared convex: no lower bound is claimed")
        known, dual = _known(problem, levels), level.dual()
        y = dual.center(found.x)
        before = known - lower_bound(level, y.weights, dual.scaled(y), found.x)
        after = known - lower_bound(level, found.weights, found.scaled, found.x)
        # The centre may have good duals by luck; the whole gap of the start is what there is to close.
        gap = float(np.mean(before + _spread(problem, levels, known)))
        if not float(after.mean()) <= 0.5 * gap + 1e-6 * (1.0 + float(np.abs(known).max())):
            worst = int(np.argmax(after))
            seen = f"D is {after.mean():.4g} below H on average; the gap at the start, before any step, is {gap:.4g}."
            raise Fault(seen, shown(r=levels[worst], y=found.weights[worst], a=found.scaled[worst]))
        return f"a share of {after.mean() / max(gap, 1e-6):.2g} is left"

    return trial.each(on)


@ORACLE.check(
    "x is at most half as far above H as the start in max_i f_i(x) - b_i, on average of levels, without noise.", _LEVEL
)
def progress(trial: OracleTrial, _rng: np.random.Generator) -> str:
    def on(problem: MinMaxProblem, levels: Any, found: Estimate) -> str:
        known = _known(problem, levels)
        before, after = _spread(problem, levels, known), largest_level(problem.at_level(levels), found.x) - known
        # At one level the start may be near the optimum by luck, which an average of iterates does not keep.
        if not after.mean() <= 0.5 * before.mean() + 1e-6:
            worst = int(np.argmax(after - 0.5 * before))
            seen = f"{after[worst]:.4g} above H after the query, {before[worst]:.4g} at the start."
            raise Fault(seen, shown(r=levels[worst], x=found.x[worst]))
        small = 1e-6 if found.x.dtype.itemsize == 8 else 1e-4
        require(at(-after, small) is None, "the exact value at x lies below H: the reference disagrees.")
        return f"a share of {float(np.max(after / np.maximum(before, 1e-6))):.2g} is left"

    return trial.each(on)


@ORACLE.check("With noise upper is at least H on average, within the tolerance.", _UPPER)
def noisy_upper_bound(trial: OracleTrial, _rng: np.random.Generator) -> str:
    levels, found = trial.noisy
    known = _known(trial.problem, levels)
    others = [trial.query(trial.problem, levels, trial.seed + extra).upper for extra in (1, 2)]
    mean = np.mean([found.upper, *others], axis=0)
    allowed = trial.tolerance * _spread(trial.problem, levels, known)
    worst = at(known - mean - allowed, 1e-9)
    if worst is not None:
        seen = f"U = {mean[worst]:.6g} on average of 3 queries, H = {known[worst]:.6g}."
        raise Fault(seen, shown(r=levels[worst], allowed=allowed[worst]))
    return f"U - H on average between {np.min(mean - known):.2g} and {np.max(mean - known):.2g}"

"""What an oracle must satisfy: bounds on the known H, and estimates that are what they say."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core import Estimate, LevelProblem, MinMaxProblem
from minmaxcon.core.lower import lower_bound
from minmaxcon.errors import Unsupported
from minmaxcon.testing.functions import taken
from minmaxcon.testing.harness import Skip, Suite, apart, at, reference, require, shown, unchanged
from minmaxcon.testing.toys import robust_toy
from minmaxcon.testing.trials import OracleTrial

__all__ = ["ORACLE"]

ORACLE = Suite()

_AVERAGES = "theory/smd.html#averages"
_UPPER = "theory/smd.html#the-upper-bound-u"
_LOWER = "theory/smd.html#the-lower-bound-d"
_LEVEL = "theory/level_set.html"
_CODE = "howto/conformance.html#arrays-and-runs"
_PAGE = "howto/conformance.html#oracles"


def _known(problem: MinMaxProblem, levels: Any) -> Any:
    try:
        return np.asarray(reference().level_value(problem, levels))
    except Unsupported as reason:
        raise Skip(str(reason)) from None


def _exact(level: LevelProblem, x: Any) -> Any:
    return (level.values(x) - level.bounds).max(1)


def _spread(problem: MinMaxProblem, levels: Any, known: Any) -> Any:
    return _exact(problem.at_level(levels), problem.start_point(levels.size)) - known


def _require_valid(level: LevelProblem, found: Estimate) -> None:
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
    y, a = np.asarray(to_numpy(found.weights)), np.asarray(to_numpy(found.scaled))
    off = np.maximum(np.abs(y.sum(1) - 1.0), -y.min(1))
    worst = at(off, 1e-5)
    if worst is not None:
        require(False, "weights are no point of the simplex.", shown(y=y[worst]))
    begin = 0
    for i, block in enumerate(dual.blocks):
        if block is not None:
            part = a[:, begin : begin + block.dimension]
            begin += block.dimension
            long = np.linalg.norm(part, axis=1) - y[:, i] * float(block.radius)
            worst = at(long, 1e-5 * (1.0 + float(block.radius)))
            if worst is not None:
                require(False, f"scaled lies outside y_{i} A_{i}.", shown(y=y[worst], a=a[worst]))


@ORACLE.check(
    "x lies in X, weights in the simplex, scaled in y_i A_i; upper is the largest of values; nothing failed.", _PAGE
)
def estimate(trial: OracleTrial, _rng: np.random.Generator) -> str:
    for problem, (levels, found) in ((trial.quiet, trial.still), (trial.problem, trial.noisy)):
        _require_valid(problem.at_level(levels), found)
        top = np.asarray(found.values).max(1)
        seen = "upper is not the largest of values."
        require(apart(top, found.upper) <= 1e-6, seen, shown(values=found.values[0], upper=found.upper))
        require(len(found.failure) == levels.size, f"failure has {len(found.failure)} entries for {levels.size} runs.")
        require(not any(found.failure), f"it reports a failure: {next(filter(None, found.failure), '')}")
    return "3 levels with noise, 3 without"


@ORACLE.check("Without noise upper >= H(r): the bound is valid at every level.", _UPPER)
def upper_bound(trial: OracleTrial, _rng: np.random.Generator) -> str:
    levels, found = trial.still
    known = _known(trial.quiet, levels)
    worst = at(known - np.asarray(found.upper), 1e-6)
    if worst is not None:
        seen = f"U = {found.upper[worst]:.6g} < {known[worst]:.6g} = H."
        require(False, seen, shown(r=levels[worst], x=found.x[worst], y=found.weights[worst]))
    return f"U - H between {np.min(found.upper - known):.2g} and {np.max(found.upper - known):.2g}"


@ORACLE.check("Without noise upper >= max_i f_i(x) - b_i: x and U are averages with the same weights.", _AVERAGES)
def upper_bounds_point(trial: OracleTrial, _rng: np.random.Generator) -> str:
    levels, found = trial.still
    reached = _exact(trial.quiet.at_level(levels), found.x)
    worst = at(reached - np.asarray(found.upper), 1e-7 * (1.0 + float(np.abs(reached).max())))
    if worst is not None:
        seen = f"U = {found.upper[worst]:.6g}, but the point that is returned has {reached[worst]:.6g}."
        require(False, seen, shown(r=levels[worst], x=found.x[worst]))
    return f"U - P(x) at least {np.min(found.upper - reached):.2g}"


@ORACLE.check("With a proximal term, upper >= H and >= max_i f_i(x) + d_x(x) - b_i, without noise.", _UPPER)
def proximal(trial: OracleTrial, _rng: np.random.Generator) -> str:
    problem = trial.quiet.with_proximal(to_numpy(trial.quiet.start_point(1))[0], 0.5)
    levels, found = trial.levels(problem), trial.query(problem, trial.levels(problem))
    reached = _exact(problem.at_level(levels), found.x)
    known = _known(problem, levels)
    for name, below in (("H", known), ("max_i f_i + d_x - b_i", reached)):
        worst = at(below - np.asarray(found.upper), 1e-6)
        if worst is not None:
            seen = f"U = {found.upper[worst]:.6g} < {below[worst]:.6g} = {name}."
            require(False, seen, shown(r=levels[worst], x=found.x[worst]))
    return "3 levels"


@ORACLE.check("The bound from below that the returned duals give is at most H.", _LOWER)
def lower(trial: OracleTrial, _rng: np.random.Generator) -> str:
    gaps = []
    for problem, (levels, found) in ((trial.quiet, trial.still), (trial.problem, trial.noisy)):
        level = problem.at_level(levels)
        if level.weak_convexity > 0:
            continue
        known = _known(problem, levels)
        bound = lower_bound(level, found.weights, found.scaled, found.x)
        worst = at(bound - known, 1e-6 * (1.0 + float(np.abs(known).max())))
        if worst is not None:
            seen = f"{bound[worst]:.6g} > {known[worst]:.6g} = H."
            require(False, seen, shown(r=levels[worst], y=found.weights[worst], a=found.scaled[worst]))
        gaps.append(float((known - bound).max()))
    return f"H exceeds it by at most {max(gaps, default=0.0):.2g}"


@ORACLE.check("x is at least half as far from optimal as the start: max_i f_i(x) - b_i - H, without noise.", _LEVEL)
def progress(trial: OracleTrial, _rng: np.random.Generator) -> str:
    levels, found = trial.still
    known = _known(trial.quiet, levels)
    before, after = _spread(trial.quiet, levels, known), _exact(trial.quiet.at_level(levels), found.x) - known
    worst = at(after - 0.5 * before, 1e-6)
    if worst is not None:
        seen = f"{after[worst]:.4g} above H after the query, {before[worst]:.4g} at the start."
        require(False, seen, shown(r=levels[worst], x=found.x[worst]))
    require(at(-after, 1e-6) is None, "the exact value at x lies below H: the reference disagrees.")
    return f"a share of {float(np.max(after / np.maximum(before, 1e-12))):.2g} is left"


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
        require(False, seen, shown(r=levels[worst], allowed=allowed[worst]))
    return f"U - H on average between {np.min(mean - known):.2g} and {np.max(mean - known):.2g}"


def _same(one: Estimate, other: Estimate, runs: Any = slice(None)) -> float:
    names = ("x", "weights", "scaled", "upper", "values")
    return max(apart(to_numpy(getattr(one, n))[runs], getattr(other, n)) for n in names)


@ORACLE.check("The same seed gives the same bits.", _CODE)
def deterministic(trial: OracleTrial, _rng: np.random.Generator) -> str:
    levels, found = trial.noisy
    again = trial.query(trial.problem, levels)
    require(_same(found, again) == 0.0, f"two queries differ by {_same(found, again):.2g}, relatively.")
    return "2 queries"


@ORACLE.check("A query changes neither data nor start, draws from no global state, and its states are values.", _CODE)
def pure(trial: OracleTrial, _rng: np.random.Generator) -> str:
    levels = trial.noisy[0]
    level, start = trial.problem.at_level(levels), trial.start(trial.problem, levels.size)
    rows = taken(next(iter(trial.problem.data.chunks(20_000)))[1], 0, 20_000)
    given = {"start.x": start.x, "bounds": level.bounds, **{f"data {name!r}": array for name, array in rows.items()}}
    with unchanged("a query", given):
        state = trial.oracle.advance(trial.oracle.begin(level, start))
        before = trial.oracle.estimate(state)
        kept = {name: np.array(to_numpy(getattr(before, name))) for name in ("x", "weights", "upper")}
        later = state if trial.oracle.finished(state) else trial.oracle.advance(state)
        trial.oracle.estimate(later)
    after = trial.oracle.estimate(state)
    for name, value in kept.items():
        seen = f"{name} of a state's estimate changed when the query went on: a state must not be written to."
        require(np.array_equal(to_numpy(getattr(after, name)), value), seen)
        require(np.array_equal(to_numpy(getattr(before, name)), value), f"{name} of an estimate changed afterwards.")
    _require_valid(level, before)
    return "data, start and states"


@ORACLE.check("Run j of R runs gives what it gives alone, also through take().", _CODE)
def run_axis(trial: OracleTrial, _rng: np.random.Generator) -> str:
    for problem, (levels, found) in ((trial.quiet, trial.still), (trial.problem, trial.noisy)):
        for j in range(levels.size):
            alone = trial.query(problem, levels[[j]])
            far = _same(found, alone, [j])
            seen = f"run {j} of {levels.size} differs from the same run alone by {far:.2g}, relatively."
            require(far <= 1e-7, seen, shown(levels=levels, upper=found.upper, alone=alone.upper))
        level = problem.at_level(levels).take([1, 2])
        some = trial.oracle.take([1, 2]).query(level, trial.start(problem, 2))
        far = _same(found, some, [1, 2])
        require(far <= 1e-7, f"runs 1 and 2 by take() differ by {far:.2g}, relatively.")
    return "3 runs, with noise and without"


@ORACLE.check("A following query starts from next: it draws other samples and ends no worse, without noise.", _LEVEL)
def goes_on(trial: OracleTrial, _rng: np.random.Generator) -> str:
    levels, found = trial.still
    level = trial.quiet.at_level(levels)
    require(tuple(found.next.x.shape) == tuple(found.x.shape), f"next.x has shape {tuple(found.next.x.shape)}.")
    again = trial.oracle.query(level, found.next)
    before, after = _exact(level, found.x), _exact(level, again.x)
    spread = _exact(level, trial.quiet.start_point(levels.size)) - np.minimum(before, after)
    worst = at(after - before - 0.1 * spread, 1e-6)
    if worst is not None:
        seen = f"max_i f_i(x) - b_i = {after[worst]:.6g} after it, {before[worst]:.6g} before."
        require(False, seen, shown(r=levels[worst], x=again.x[worst]))
    levels, found = trial.noisy
    begun = trial.start(trial.problem, levels.size).position
    ended = found.next.position
    if (ended.samples, repr(ended.generator)) == (begun.samples, repr(begun.generator)):
        other = trial.query(trial.problem, levels, trial.seed + 1)
        seen = "next begins where this query began, and would draw the same samples again."
        require(_same(found, other) == 0.0, seen, shown(samples=found.samples))
    return "3 levels"


@ORACLE.check("Data in float32 and torch tensors are solved in their own precision and engine.", _CODE)
def engines(trial: OracleTrial, _rng: np.random.Generator) -> str:
    levels = trial.levels(robust_toy(1))
    found = trial.query(robust_toy(1), levels)
    for engine, dtype, allowed in (("torch", "float64", 1e-3), ("numpy", "float32", 0.05)):
        problem = robust_toy(1, engine=engine, dtype=dtype)
        other = trial.query(problem, levels)
        kind = f"{namespace(other.x).name}, {other.x.dtype}"
        require(namespace(other.x).name == engine and str(other.x.dtype).endswith(dtype), f"x of {dtype} is {kind}.")
        seen = f"upper differs by {apart(found.upper, other.upper):.2g} with {engine} and {dtype}, relatively."
        require(apart(found.upper, other.upper) <= allowed, seen)
    return "torch; float32"

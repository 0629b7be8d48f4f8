"""An oracle's calls: the same seed, values that stay as they are, runs side by side, precision and engines."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core import Estimate, MinMaxProblem
from minmaxcon.testing.functions import taken
from minmaxcon.testing.harness import Fault, apart, require, shown, unchanged
from minmaxcon.testing.oracle_laws import ORACLE, largest_level, require_valid
from minmaxcon.testing.toys import robust_toy
from minmaxcon.testing.trials import OracleTrial

__all__: list[str] = []

_CODE = "howto/conformance.html#arrays-and-runs"
_LEVEL = "theory/level_set.html"


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
    require_valid(level, before)
    return "data, start and states"


@ORACLE.check("Run j of R runs gives what it gives alone, also through take().", _CODE)
def run_axis(trial: OracleTrial, _rng: np.random.Generator) -> str:
    for problem, levels, found in (*trial.still, (trial.problem, *trial.noisy)):
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
    def on(problem: MinMaxProblem, levels: Any, found: Estimate) -> str:
        level = problem.at_level(levels)
        require(tuple(found.next.x.shape) == tuple(found.x.shape), f"next.x has shape {tuple(found.next.x.shape)}.")
        again = trial.oracle.query(level, found.next)
        before, after = largest_level(level, found.x), largest_level(level, again.x)
        spread = largest_level(level, problem.start_point(levels.size)) - np.minimum(before, after)
        lost = after - before
        if not lost.mean() <= trial.setback(problem) * spread.mean() + 1e-6:
            worst = int(np.argmax(lost))
            seen = f"max_i f_i(x) - b_i = {after[worst]:.6g} after it, {before[worst]:.6g} before."
            raise Fault(seen, shown(r=levels[worst], x=again.x[worst]))
        return "3 levels"

    told = trial.each(on)
    levels, found = trial.noisy
    begun = trial.start(trial.problem, levels.size).position
    ended = found.next.position
    if (ended.samples, repr(ended.generator)) == (begun.samples, repr(begun.generator)):
        other = trial.query(trial.problem, levels, trial.seed + 1)
        seen = "next begins where this query began, and would draw the same samples again."
        require(_same(found, other) == 0.0, seen, shown(samples=found.samples))
    return told


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

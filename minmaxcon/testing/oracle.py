r"""Checks of an oracle: bounds on the known H, estimates that are what they claim, runs, engines and states.

.. math:: D \le H(r) = \min_x \max_i f_i(x) - b_i \le \max_i f_i(\bar x) - b_i \le U
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.checks import number, seed_number
from minmaxcon.core import Batch, Estimate, LevelProblem, MinMaxProblem, Oracle, Position, Start
from minmaxcon.core.lower import lower_bound
from minmaxcon.data import Finite
from minmaxcon.testing.check import (
    Check,
    Fault,
    Part,
    Skip,
    apart,
    at,
    bounded,
    exact_solutions,
    report_of,
    require,
    require_kind,
)
from minmaxcon.testing.problem import finite_problem
from minmaxcon.testing.purity import PAGE, Call, first_rows, lasting, run_axis, same_bits, unchanged
from minmaxcon.testing.report import Report
from minmaxcon.testing.toys import mixed_toy, robust_toy

__all__ = ["ORACLE", "check_oracle", "oracle_part"]

_AVERAGES = "theory/smd.html#averages"
_UPPER = "theory/smd.html#the-upper-bound-u"
_LOWER = "theory/smd.html#the-lower-bound-d"
_LEVEL = "theory/level_set.html"
_PAGE = "howto/conformance.html#oracles"

_ROWS = 500  # rows of a problem's data that are drawn at every step where there is to be no noise


def check_oracle(oracle: Any, problem: Any = None, *, tolerance: float = 0.1, seed: int = 0) -> Report:
    """Check an oracle on a problem with known H, and on problems without noise.

    Parameters
    ----------
    oracle : Oracle
        What is checked; give it few steps, it is asked about thirty times.
    problem : MinMaxProblem, optional
        A small problem on finite data with a cvxpy form; one in two variables by default. What must hold without noise
        is checked on two built-in problems of a single sample (a ball with an inner ball; a simplex times a box with
        an inner simplex and a penalised interval), as far as they meet the oracle's needs, and on the problem given,
        with batches that are all of its first 500 rows.
    tolerance : float
        By how much the upper bound may be too low where there is noise, on average of three queries: a share of
        what the starting point is above H, positive.
    seed : int
        Seed of the queries.

    Returns
    -------
    Report
        The estimate's fields, bounds on H from both sides, progress; determinism, purity, runs, engines.

    Raises
    ------
    InvalidInput
        If it is no oracle, the problem no problem on finite data, or the tolerance not positive.
    Unsupported
        If the problem does not meet the oracle's needs.
    """
    part = oracle_part(oracle, problem, tolerance=tolerance, seed=seed)
    return report_of(part.label, [part], seed)


def oracle_part(oracle: Any, problem: Any = None, *, tolerance: Any = 0.1, seed: int = 0) -> Part:
    """Return the checks of an oracle."""
    require_kind("oracle", oracle, Oracle, "an Oracle such as SMD()")
    single = finite_problem(robust_toy(200, seed=1) if problem is None else problem)
    oracle.needs.check(type(oracle).__name__, single.at_level(0.0))
    given = () if problem is None else (_without_noise(single),)
    quiet = [toy for toy in (robust_toy(1), mixed_toy(), *given) if oracle.needs.missing(toy.at_level(0.0)) is None]
    share = number("tolerance", tolerance, "must be a positive number, a share such as 0.1.", above=0.0)
    trial = OracleTrial(oracle, single, tuple(quiet), share, seed_number("seed", seed))
    return Part(type(oracle).__name__, trial, ORACLE)


class Whole(Finite):
    """Finite data whose every batch is all rows, so that there is no noise, whatever a method draws."""

    def draw(self, position: Position, steps: int, batch_size: int) -> tuple[Iterator[Batch], Position]:
        """See :meth:`Source.draw`."""
        _, after = super().draw(position, steps, batch_size)
        return (dict(self.arrays) for _ in range(steps)), after


def _without_noise(problem: MinMaxProblem) -> MinMaxProblem:
    """Return a problem whose every batch is all of its finite data, or the first rows where these are many."""
    rows = first_rows(problem.data, _ROWS)
    like = problem.data.like
    dtype = "float32" if like.dtype.itemsize == 4 else "float64"
    return replace(problem, data=Whole(rows, engine=namespace(like).name, dtype=dtype))


@dataclass(frozen=True, eq=False)
class OracleTrial:
    """An oracle, a problem on finite data, problems without noise, and what several checks ask of them."""

    oracle: Oracle
    problem: MinMaxProblem
    quiet: tuple[MinMaxProblem, ...]
    tolerance: float
    seed: int
    solved: dict[tuple[MinMaxProblem, bytes], Any] = field(default_factory=dict)

    def start(self, problem: MinMaxProblem, runs: int, seed: int | None = None) -> Start:
        """Return where a query starts."""
        rng = np.random.default_rng(self.seed if seed is None else seed)
        return Start(problem.start_point(runs), None, Position.start(rng))

    def query(self, problem: MinMaxProblem, levels: Any, seed: int | None = None) -> Estimate:
        """Return the estimate of a query at some levels, one a run."""
        levels = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        return self.oracle.query(problem.at_level(levels), self.start(problem, levels.size, seed))

    def levels(self, problem: MinMaxProblem) -> Any:
        """Return three levels around the objective at the start."""
        first = float(problem.at_level(0.0).values(problem.start_point(1))[0, 0])
        return first - np.array([0.0, 0.3, 0.6]) * (0.5 + abs(first))

    @cached_property
    def noisy(self) -> tuple[Any, Estimate]:
        """Levels and estimate on the problem itself."""
        levels = self.levels(self.problem)
        return levels, self.query(self.problem, levels)

    @cached_property
    def still(self) -> tuple[tuple[MinMaxProblem, Any, Estimate], ...]:
        """Each problem without noise, with levels and estimate."""
        tried = ((problem, self.levels(problem)) for problem in self.quiet)
        return tuple((problem, levels, self.query(problem, levels)) for problem, levels in tried)

    def known(self, problem: MinMaxProblem, levels: Any) -> Any:
        """Return the exact H at some levels, solved once however many checks ask for it."""
        key = (problem, np.asarray(levels).tobytes())
        if key not in self.solved:
            with exact_solutions() as (reference, _):
                self.solved[key] = np.asarray(reference.level_value(problem, levels))
        return self.solved[key]

    @property
    def every(self) -> tuple[tuple[MinMaxProblem, Any, Estimate], ...]:
        """All problems, with and without noise."""
        return (*self.still, (self.problem, *self.noisy))


def _quiet(check: Callable[[OracleTrial, MinMaxProblem, Any, Estimate], str]) -> Callable[[OracleTrial, Any], str]:
    """Return the check of each problem without noise; a fault names the problem."""

    @wraps(check)
    def run(trial: OracleTrial, _rng: np.random.Generator) -> str:
        told, skipped = [], []
        for problem, levels, found in trial.still:
            try:
                told.append(f"{problem.name}: {check(trial, problem, levels, found)}")
            except Skip as reason:
                skipped.append(f"{problem.name}: {reason}")
            except Fault as fault:
                fault.seen += f" (On {problem.name}, without noise.)"
                raise
        if not told:
            raise Skip("; ".join(skipped))
        return "; ".join(told)

    return run


def _largest(level: LevelProblem, x: Any) -> Any:
    r"""Return :math:`\max_i f_i(x) + d_x(x) - b_i` at x (R, d), an ndarray (R,), by a pass over finite data."""
    return (level.values(x) - level.bounds).max(1)


def _spread(problem: MinMaxProblem, levels: Any, known: Any) -> Any:
    return _largest(problem.at_level(levels), problem.start_point(levels.size)) - known


def _small(x: Any, double: float = 1e-6) -> float:
    """Return the allowance for rounding in the precision of x."""
    return double if x.dtype.itemsize == 8 else 1e-4


def _arrays(found: Estimate) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("x", "weights", "scaled", "upper", "values")}


def _require_valid(level: LevelProblem, found: Estimate) -> None:
    """Raise a fault unless an estimate has its shapes, x lies in X and the duals lie in their sets."""
    runs, k = level.bounds.shape
    dual = level.dual()
    needed = ((runs, level.primal.dimension), (runs, k), (runs, dual.inner_dimension), (runs,), (runs, k))
    for (name, array), need in zip(_arrays(found).items(), needed, strict=True):
        require(tuple(array.shape) == need, f"{name} has shape {tuple(array.shape)}, not {need}.")
        require(np.isfinite(to_numpy(array)).all(), f"{name} is not finite.")
    inside = to_numpy(level.primal.contains(found.x, _small(found.x)))
    require(np.all(inside), "x lies outside X.", x=found.x[0])
    y, a = (np.asarray(to_numpy(part), dtype=np.float64) for part in (found.weights, found.scaled))
    bounded(np.maximum(np.abs(y.sum(1) - 1.0), -y.min(1)), 1e-5, "weights are no point of the simplex.", y=y)
    begin = 0
    for i, block in enumerate(dual.blocks):
        if block is not None:
            _require_inside(block, i, y[:, i], a[:, begin : begin + block.dimension])
            begin += block.dimension


def _require_inside(block: Any, i: int, weight: Any, part: Any) -> None:
    """Raise a fault unless <a_i, v> <= y_i max_A <alpha, v> in every direction that is tried."""
    p = block.dimension
    drawn = np.random.default_rng(0).standard_normal((20, p))
    both = np.concatenate([drawn, np.eye(p), np.ones((1, p)), part])
    length = np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-12)
    v = np.concatenate([both / length, -both / length])
    edge = np.asarray(block.maximize(1e9 * v)[0])  # so long that the penalty no longer counts
    excess = part @ v.T - weight[:, None] * np.vecdot(v, edge)
    seen = f"scaled lies outside y_{i} A_{i}, by {{excess:.3g}} along a direction."
    allowed = 1e-5 * (1.0 + float(block.radius))
    bounded(excess.max(1), allowed, seen, y_i=weight, a_i=part, direction=v[excess.argmax(1)])


def _estimate(trial: OracleTrial, _rng: np.random.Generator) -> str:
    """The point lies in X, weights in the simplex, scaled in y_i A_i; upper is the largest of values; no failure."""
    for problem, levels, found in trial.every:
        _require_valid(problem.at_level(levels), found)
        top = np.asarray(found.values).max(1)
        seen = "upper is not the largest of values."
        require(apart(top, found.upper) <= 1e-6, seen, values=found.values[0], upper=found.upper)
        require(len(found.failure) == levels.size, f"failure has {len(found.failure)} entries for {levels.size} runs.")
        require(not any(found.failure), f"it reports a failure: {next(filter(None, found.failure), '')}")
    return f"3 levels with noise, {3 * len(trial.still)} without"


@_quiet
def _upper_bound(trial: OracleTrial, problem: MinMaxProblem, levels: Any, found: Estimate) -> str:
    """Without noise upper >= H(r): the bound is valid at every level."""
    known, upper = trial.known(problem, levels), np.asarray(found.upper)
    seen = "U = {upper:.6g} < {known:.6g} = H."
    bounded(known - upper, 1e-6, seen, r=levels, x=found.x, y=found.weights, upper=upper, known=known)
    return f"U - H between {np.min(upper - known):.2g} and {np.max(upper - known):.2g}"


@_quiet
def _upper_bounds_point(_trial: OracleTrial, problem: MinMaxProblem, levels: Any, found: Estimate) -> str:
    """Without noise upper >= max_i f_i(x) - b_i: x and U are averages with the same weights."""
    reached, upper = _largest(problem.at_level(levels), found.x), np.asarray(found.upper)
    allowed = _small(found.x, 1e-7) * (1.0 + float(np.abs(reached).max()))
    seen = "U = {upper:.6g}, but the point that is returned has {reached:.6g}."
    bounded(reached - upper, allowed, seen, r=levels, x=found.x, upper=upper, reached=reached)
    return f"U - P(x) at least {np.min(upper - reached):.2g}"


@_quiet
def _proximal(trial: OracleTrial, plain: MinMaxProblem, _levels: Any, _found: Estimate) -> str:
    """With a proximal term, upper >= H and >= max_i f_i(x) + d_x(x) - b_i, without noise."""
    if trial.oracle.needs.unregularised:
        raise Skip("it takes no proximal term")
    problem = plain.with_proximal(to_numpy(plain.start_point(1))[0], 0.5)
    levels = trial.levels(problem)
    found, known = trial.query(problem, levels), trial.known(problem, levels)
    upper = np.asarray(found.upper)
    for name, below in (("H", known), ("max_i f_i + d_x - b_i", _largest(problem.at_level(levels), found.x))):
        seen = f"U = {{upper:.6g}} < {{below:.6g}} = {name}."
        bounded(below - upper, _small(found.x), seen, r=levels, x=found.x, upper=upper, below=below)
    return "3 levels"


def _lower(trial: OracleTrial, _rng: np.random.Generator) -> str:
    """The bound from below that the returned duals give is at most H."""
    gaps = []
    for problem, levels, found in trial.every:
        level = problem.at_level(levels)
        if level.modulus > 0:
            continue
        known = trial.known(problem, levels)
        bound = lower_bound(level, found.weights, found.scaled, found.x)
        allowed, seen = 1e-6 * (1.0 + float(np.abs(known).max())), "{bound:.6g} > {known:.6g} = H."
        duals = {"y": found.weights, "a": found.scaled}
        bounded(bound - known, allowed, seen, r=levels, **duals, bound=bound, known=known)
        gaps.append(float((known - bound).max()))
    return f"H exceeds it by at most {max(gaps, default=0.0):.2g}"


@_quiet
def _tightness(trial: OracleTrial, problem: MinMaxProblem, levels: Any, found: Estimate) -> str:
    """H less that bound is at most half of the start's duality gap P(x_0) - D(y_0), on average of levels, no noise."""
    level = problem.at_level(levels)
    if level.modulus > 0:
        raise Skip("it is not declared convex: no lower bound is claimed")
    known, dual = trial.known(problem, levels), level.dual()
    y = dual.center(found.x)
    before = known - lower_bound(level, y.weights, dual.scaled(y), found.x)
    after = known - lower_bound(level, found.weights, found.scaled, found.x)
    # The centre may have good duals by luck; the whole gap of the start is what there is to close.
    gap = float(np.mean(before + _spread(problem, levels, known)))
    if not float(after.mean()) <= 0.5 * gap + 1e-6 * (1.0 + float(np.abs(known).max())):
        worst = int(np.argmax(after))
        seen = f"D is {after.mean():.4g} below H on average; the duality gap at the start is {gap:.4g}."
        raise Fault(seen, r=levels[worst], y=found.weights[worst], a=found.scaled[worst])
    return f"a share of {after.mean() / max(gap, 1e-6):.2g} is left"


@_quiet
def _progress(trial: OracleTrial, problem: MinMaxProblem, levels: Any, found: Estimate) -> str:
    """The point is at most half as far above H as the start in max_i f_i(x) - b_i, on average of levels, no noise."""
    known = trial.known(problem, levels)
    before, after = _spread(problem, levels, known), _largest(problem.at_level(levels), found.x) - known
    # At one level the start may be near the optimum by luck, which an average of iterates does not keep.
    if not after.mean() <= 0.5 * before.mean() + 1e-6:
        worst = int(np.argmax(after - 0.5 * before))
        seen = f"{after[worst]:.4g} above H after the query, {before[worst]:.4g} at the start."
        raise Fault(seen, r=levels[worst], x=found.x[worst])
    seen = "the exact value at x lies below H: the reference disagrees."
    require(at(-after, _small(found.x)) is None, seen)
    return f"a share of {float(np.max(after / np.maximum(before, 1e-6))):.2g} is left"


def _noisy_upper_bound(trial: OracleTrial, _rng: np.random.Generator) -> str:
    """With noise upper is at least H on average, within the tolerance."""
    levels, found = trial.noisy
    known = trial.known(trial.problem, levels)
    others = [trial.query(trial.problem, levels, trial.seed + extra).upper for extra in (1, 2)]
    mean = np.mean([found.upper, *others], axis=0)
    allowed = trial.tolerance * _spread(trial.problem, levels, known)
    seen = "U = {mean:.6g} on average of 3 queries, H = {known:.6g}."
    bounded(known - mean - allowed, 1e-9, seen, r=levels, allowed=allowed, mean=mean, known=known)
    return f"U - H on average between {np.min(mean - known):.2g} and {np.max(mean - known):.2g}"


def _deterministic(trial: OracleTrial, _rng: np.random.Generator) -> str:
    """The same seed gives the same bits."""
    levels, found = trial.noisy
    same_bits("queries", _arrays(found), _arrays(trial.query(trial.problem, levels)))
    return "2 queries"


def _pure(trial: OracleTrial, _rng: np.random.Generator) -> str:
    """A query changes neither data nor start, draws from no global state, and its states are values."""
    levels, oracle = trial.noisy[0], trial.oracle
    level, start = trial.problem.at_level(levels), trial.start(trial.problem, levels.size)
    rows = first_rows(trial.problem.data, 20_000)
    given = {"start.x": start.x, "bounds": level.bounds, **{f"data {name!r}": array for name, array in rows.items()}}
    with unchanged("a query", given):
        state = oracle.advance(oracle.begin(level, start))
        _require_valid(level, oracle.estimate(state))
        lasting(state, oracle.advance, oracle.finished, lambda state: _arrays(oracle.estimate(state)), 1)
    return "data, start and states"


def _run_axis(trial: OracleTrial, _rng: np.random.Generator) -> str:
    """Run j of R runs gives what it gives alone, also through take()."""
    for problem, levels, found in trial.every:

        def query(r: Any, problem: Any = problem, found: Estimate = found) -> dict[str, Any]:
            if np.ndim(r):
                return _arrays(found)
            return {name: array[0] for name, array in _arrays(trial.query(problem, r)).items()}

        run_axis("a query", Call(query, {"r": levels}), 1e-7)
        level = problem.at_level(levels).take([1, 2])
        some = _arrays(trial.oracle.take([1, 2]).query(level, trial.start(problem, 2)))
        far = max(apart(to_numpy(array)[[1, 2]], some[name]) for name, array in _arrays(found).items())
        require(far <= 1e-7, f"runs 1 and 2 by take() differ by {far:.2g}, relatively.")
    return "3 runs, with noise and without"


@_quiet
def _follows(trial: OracleTrial, problem: MinMaxProblem, levels: Any, found: Estimate) -> str:
    """A following query ends no worse, without noise."""
    level = problem.at_level(levels)
    require(tuple(found.next.x.shape) == tuple(found.x.shape), f"next.x has shape {tuple(found.next.x.shape)}.")
    again = trial.oracle.query(level, found.next)
    before, after = _largest(level, found.x), _largest(level, again.x)
    spread, lost = _spread(problem, levels, np.minimum(before, after)), after - before
    # The share of the way from the start that a second query may lose: few steps do less on large problems.
    setback = 0.1 if problem.data.size == 1 else 0.5
    if not lost.mean() <= setback * spread.mean() + 1e-6:
        worst = int(np.argmax(lost))
        seen = f"max_i f_i(x) - b_i = {after[worst]:.6g} after it, {before[worst]:.6g} before."
        raise Fault(seen, r=levels[worst], x=again.x[worst])
    return "3 levels"


def _goes_on(trial: OracleTrial, rng: np.random.Generator) -> str:
    """A following query starts from next: it draws other samples and ends no worse, without noise."""
    told = _follows(trial, rng)
    levels, found = trial.noisy
    begun, ended = trial.start(trial.problem, levels.size).position, found.next.position
    if (ended.samples, repr(ended.generator)) == (begun.samples, repr(begun.generator)):
        other = _arrays(trial.query(trial.problem, levels, trial.seed + 1))
        same = all(apart(array, other[name]) == 0.0 for name, array in _arrays(found).items())
        seen = "next begins where this query began, and would draw the same samples again."
        require(same, seen, samples=found.samples)
    return told


def _engines(trial: OracleTrial, _rng: np.random.Generator) -> str:
    """Data in float32 and torch tensors are solved in their own precision and engine."""
    levels = trial.levels(robust_toy(1))
    found = trial.query(robust_toy(1), levels)
    for engine, dtype, allowed in (("torch", "float64", 1e-3), ("numpy", "float32", 0.05)):
        other = trial.query(robust_toy(1, engine=engine, dtype=dtype), levels)
        kind = f"{namespace(other.x).name}, {other.x.dtype}"
        require(namespace(other.x).name == engine and str(other.x.dtype).endswith(dtype), f"x of {dtype} is {kind}.")
        seen = f"upper differs by {apart(found.upper, other.upper):.2g} with {engine} and {dtype}, relatively."
        require(apart(found.upper, other.upper) <= allowed, seen)
    return "torch; float32"


ORACLE = (
    Check("estimate", _PAGE, _estimate),
    Check("upper_bound", _UPPER, _upper_bound),
    Check("upper_bounds_point", _AVERAGES, _upper_bounds_point),
    Check("proximal", _UPPER, _proximal),
    Check("lower", _LOWER, _lower),
    Check("tightness", _LOWER, _tightness),
    Check("progress", _LEVEL, _progress),
    Check("noisy_upper_bound", _UPPER, _noisy_upper_bound),
    Check("deterministic", PAGE, _deterministic),
    Check("pure", PAGE, _pure),
    Check("run_axis", PAGE, _run_axis),
    Check("goes_on", _LEVEL, _goes_on),
    Check("engines", PAGE, _engines),
)

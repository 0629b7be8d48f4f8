"""Checks of a problem and all its parts: fused evaluation, data, starting point, bounds from below, optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core import Batch, ConstraintFamily, MinMaxProblem, Position, Status
from minmaxcon.core.compiled import engine_family
from minmaxcon.core.constraint import SeparateFamily
from minmaxcon.core.lower import lower_bound
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import PerspectiveGenerator
from minmaxcon.testing.check import (
    Check,
    Fault,
    Part,
    Skip,
    at,
    bounded,
    exact_solutions,
    report_of,
    require,
    require_kind,
)
from minmaxcon.testing.constraint import constraint_part
from minmaxcon.testing.generator import generator_part, interior
from minmaxcon.testing.purity import Call, converted, first_rows, purity_checks, rows_of, taken, unchanged
from minmaxcon.testing.report import Report

__all__ = ["PROBLEM", "check_problem", "finite_problem", "fresh_values", "like_data", "problem_parts", "single_run"]

_PARTS = "howto/new_problem.html#what-each-part-must-obey"
_AUTOGRAD = "howto/new_problem.html#without-autograd"
_CLASS = "theory/problem_class.html#what-is-assumed"
_LEVEL = "theory/level_set.html#what-a-level-proves"
_DATA = "howto/conformance.html#data"

_STREAM = "the data are a stream"
_SURROGATES = 1e-2  # how exact the slopes of surrogates must be: they may be read from tables


def check_problem(problem: Any, *, seed: int = 0) -> Report:
    """Check a problem and all that it is made of.

    Parameters
    ----------
    problem : MinMaxProblem
        What is checked.
    seed : int
        Seed of all that is drawn.

    Returns
    -------
    Report
        The findings of :func:`check_generator` on its geometry, its inner blocks and the generator over its levels
        (with the theorem's K), of :func:`check_constraint` on its objective and constraints, and of the problem as a
        whole: fused evaluation, data, starting point, bounds from below, the optimum by cvxpy.

    Raises
    ------
    InvalidInput
        If it is no problem.
    """
    return report_of(str(getattr(problem, "name", problem)), problem_parts(problem), seed)


def problem_parts(problem: Any) -> list[Part]:
    """Return the checks of a problem: of its geometry, its inner blocks, their generator, its functions and itself."""
    require_kind("problem", problem, MinMaxProblem, "a MinMaxProblem, such as load_problem() returns")
    functions = {"objective": problem.objective}
    for i, constraint in enumerate(problem.constraints):
        functions[f"constraints[{i}]" + (f" {constraint.name}" if constraint.name != "constraint" else "")] = constraint
    blocks: dict[str, Part] = {}  # like blocks are checked once
    for label, function in functions.items():
        if function.dual is not None:
            blocks.setdefault(repr(function.dual), generator_part(function.dual, f"inner block of {label}"))
    levels = PerspectiveGenerator([function.dual for function in functions.values()], "theorem")
    slopes = {"slopes": _SURROGATES} if problem.surrogate else {}
    parts = tuple(
        constraint_part(function, problem.primal, problem.data, problem.start, label=label, **slopes)
        for label, function in functions.items()
    )
    whole = Part("problem", problem, PROBLEM, after=parts)
    return [generator_part(problem.primal, "primal"), *blocks.values(), generator_part(levels, "dual"), *parts, whole]


def finite_problem(problem: Any) -> MinMaxProblem:
    """Return a problem of one run on finite data, or refuse what is none."""
    require_kind("problem", problem, MinMaxProblem, "a MinMaxProblem on finite data")
    if problem.data.size is None:
        need = "must be a MinMaxProblem on finite data: nothing is exact on a stream."
        raise InvalidInput("problem", problem.name, need)
    return single_run(problem)


def like_data(problem: MinMaxProblem, x: Any) -> Any:
    """Return a point (d,), or several (R, d), as a new array (R, d) of the data's engine and precision."""
    points = np.array(np.atleast_2d(x), dtype=np.float64)
    return namespace(problem.data.like).asarray(points, problem.data.like)


def fresh_values(problem: MinMaxProblem, x: Any) -> Any:
    """Return :math:`f_0` and :math:`f_i - b_i` at x (R, d), an ndarray (R, m + 1), by a pass over finite data."""
    points = like_data(problem, x)
    level = problem.at_level(np.zeros(int(points.shape[0])))
    return level.values(points) - level.bounds


def single_run(problem: MinMaxProblem) -> MinMaxProblem:
    """Return the first of several runs as a problem of one; a problem of one as it is."""
    if not problem.runs:
        return problem
    first = problem.take([0])
    return first.with_bounds(*(float(bound) for bound in first.bounds()[0]))


def _points(problem: MinMaxProblem, rng: np.random.Generator, count: int) -> Any:
    return like_data(problem, interior(problem.primal, rng, count))


def _batch(problem: MinMaxProblem, rows: int = 500) -> Batch:
    return first_rows(problem.data, rows)


def _duals(family: ConstraintFamily, rng: np.random.Generator, like: Any, runs: int) -> tuple[Any, Any]:
    blocks = [c.dual for c in family.constraints]
    y = rng.dirichlet(np.ones(len(blocks)), runs)
    parts = [y[:, [i]] * b.sample(rng, runs) for i, b in enumerate(blocks) if b is not None]
    a = np.concatenate(parts, axis=1) if parts else np.zeros((runs, 0))
    xp = namespace(like)
    return xp.asarray(y, like), xp.asarray(a, like)


def _evaluated(family: ConstraintFamily, batch: Batch, x: Any, y: Any, a: Any) -> dict[str, Any]:
    found = family.evaluate(x, batch)
    return {"F": found.F, "G": found.G, "the gradient": found.pullback(y, a)}


def _numbers(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.array(to_numpy(part), dtype=np.float64) for name, part in parts.items()}


def _fused(problem: MinMaxProblem, rng: np.random.Generator) -> str:
    """Functions evaluated together give what each gives alone, in the order of the levels."""
    batch, x = _batch(problem), _points(problem, rng, 4)
    tolerance = 1e-9 if x.dtype.itemsize == 8 else 1e-4
    for where in ("family", "constraint_family"):
        family = getattr(problem, where)
        y, a = _duals(family, rng, x, 4)
        together = _numbers(_evaluated(family, batch, x, y, a))
        separate = engine_family(SeparateFamily(family.constraints), problem.data)
        alone = _numbers(_evaluated(separate, batch, x, y, a))
        for name, part in together.items():
            shapes = f"{name} of {where} has shape {part.shape}, not {alone[name].shape}."
            require(part.shape == alone[name].shape, shapes)
            scale = 1e-9 + np.abs(alone[name]).max(initial=0.0)
            worst = at(np.abs(part - alone[name]) / scale, tolerance)
            if worst is not None:
                place = tuple(int(i) for i in np.unravel_index(worst, part.shape))
                both = f"{part[place]:.10g} together, {alone[name][place]:.10g} alone"
                raise Fault(f"{name} of {where}, entry {place}: {both}.", x=x[place[0]])
    return f"{len(problem.family.constraints)} functions"


def _start(problem: MinMaxProblem, rng: np.random.Generator) -> str:
    """Every function is finite where solvers start, and the start lies in X."""
    x = problem.start_point(1)
    require(np.all(to_numpy(problem.primal.contains(x, 1e-6))), "the start lies outside X.", start=x[0])
    y, a = _duals(problem.family, rng, x, 1)
    found = _numbers(_evaluated(problem.family, _batch(problem), x, y, a))
    for name, part in found.items():
        require(np.isfinite(part).all(), f"{name} is not finite at the start.", start=x[0])
    if problem.data.size is None:
        return "finite on the first samples"
    values = fresh_values(problem, np.tile(to_numpy(x), (problem.runs or 1, 1)))
    return f"f_0 = {values[0, 0]:.6g}, largest f_i - b_i = {values[:, 1:].max():.3g}"


def _draws(problem: MinMaxProblem, rng: np.random.Generator) -> str:
    """draw(position, ...) depends on the position alone, and not on how steps are split among calls."""
    data, first = problem.data, Position.start(np.random.default_rng(int(rng.integers(2**31))))

    def drawn(position: Position, steps: int) -> tuple[list[dict[str, Any]], Position]:
        with unchanged("draw()", {}):
            batches, after = data.draw(position, steps, 5)
            return [{name: _dense(array) for name, array in batch.items()} for batch in batches], after

    batches, end = drawn(first, 6)
    begun, middle = drawn(first, 2)
    rest, last = drawn(middle, 4)
    pieces = begun + rest
    require(len(batches) == len(pieces), f"{len(batches)} batches at once, {len(pieces)} in two calls.")
    require(end.samples == last.samples, f"{end.samples} samples counted at once, {last.samples} in two calls.")
    for step, (one, other) in enumerate(zip(batches, pieces, strict=True)):
        for name, array in one.items():
            require(array.shape[0] == 5, f"batch {step}: array {name!r} has {array.shape[0]} rows, 5 were asked for.")
            seen = f"batch {step}: array {name!r} differs when the steps are drawn in two calls."
            require(np.array_equal(array, other[name]), seen)
    return "6 batches at once, and as 2 and 4"


def _dense(array: Any) -> Any:
    return array.toarray() if hasattr(array, "toarray") else np.array(to_numpy(array))


def _sampling(problem: MinMaxProblem, rng: np.random.Generator) -> str:
    """The pieces of chunks() are shares of all data, and the batches of draw() have its mean."""
    data = problem.data
    if data.size is None:
        raise Skip(f"{_STREAM}: there is no exact mean")
    x, family = _points(problem, rng, 1), problem.family

    def stacked(batch: Any) -> Any:
        found = family.evaluate(x, batch)
        return np.concatenate([np.asarray(to_numpy(part), dtype=np.float64)[0] for part in (found.F, found.G)])

    small = 1e-9 if x.dtype.itemsize == 8 else 1e-4
    whole: Any = sum(share * stacked(batch) for share, batch in data.chunks())
    pieces = list(data.chunks(max(1, -(-data.size // 3))))
    require(abs(sum(share for share, _ in pieces) - 1.0) <= 1e-9, "the shares do not sum to 1.")
    rows = sum(rows_of(batch) for _, batch in pieces)
    require(rows == data.size, f"the pieces hold {rows} rows, size is {data.size}.")
    again: Any = sum(share * stacked(batch) for share, batch in pieces)
    worst = at(np.abs(again - whole) / (1e-9 + np.abs(whole).max()), small)
    if worst is not None:
        both = f"{again[worst]:.10g} over the pieces, {whole[worst]:.10g} over all"
        raise Fault(f"the mean over pieces is not the mean over all: entry {worst} is {both}.", x=x[0])
    if family.knows_means(data):
        known = family.means(x, data)
        told = np.concatenate([np.asarray(to_numpy(part), dtype=np.float64)[0] for part in (known.F, known.G)])
        worst = at(np.abs(told - whole) / (1e-9 + np.abs(whole).max()), small)
        if worst is not None:
            seen = f"entry {worst} is {told[worst]:.10g} and {whole[worst]:.10g} over all rows"
            raise Fault(f"the means that the family knows are not those of the data: {seen}.", x=x[0])
    batches, _ = data.draw(Position.start(np.random.default_rng(int(rng.integers(2**31)))), 400, 20)
    drawn = np.stack([stacked(batch) for batch in batches])
    error = drawn.std(0, ddof=1) / np.sqrt(len(drawn)) + small * (1e-9 + np.abs(whole).max())
    excess = np.abs(drawn.mean(0) - whole) / error
    worst = at(excess, 6.0)
    if worst is not None:
        seen = f"term {worst} is {drawn.mean(0)[worst]:.6g} over 400 batches and {whole[worst]:.6g} over all data,"
        raise Fault(f"{seen} {excess[worst]:.3g} standard errors apart.", x=x[0])
    return f"3 pieces; 400 batches of 20, within {excess.max(initial=0.0):.2g} standard errors"


def _refine(problem: MinMaxProblem, rng: np.random.Generator) -> str:
    """refine(x, data) makes no function larger and stays in X."""
    if problem.data.size is None:
        raise Skip(_STREAM)
    x = _points(problem, rng, 3)
    moved = problem.family.refine(x, problem.data)
    inside = np.asarray(to_numpy(problem.primal.contains(moved, 1e-6)))
    require(inside.all(), "a refined point lies outside X.", x=x[int(np.argmin(inside))])
    level = single_run(problem).at_level(0.0)
    before, after = level.values(x), level.values(moved)
    worst = at((after - before) / (1.0 + np.abs(before)), 1e-6 if x.dtype.itemsize == 8 else 1e-3)
    if worst is not None:
        j, i = divmod(worst, before.shape[1])
        seen = f"function {i} rises from {before[j, i]:.6g} to {after[j, i]:.6g}."
        raise Fault(seen, x=x[j], refined=moved[j])
    return "3 points"


def _lower_bounds(problem: MinMaxProblem, rng: np.random.Generator) -> str:
    """The lower bound from any duals is below max_i f_i(x) - b_i at every x."""
    if problem.data.size is None:
        raise Skip(f"{_STREAM}: no lower bound is proved")
    single = single_run(problem)
    x = single.start_point(1)
    value = float(fresh_values(single, to_numpy(x))[0, 0])
    level = single.at_level(np.array([value]))
    if level.modulus > 0:
        raise Skip("the problem is not declared convex: no lower bound is claimed")
    y, a = _duals(level.family, rng, x, 1)
    found = float(lower_bound(level, y, a, x, iterations=50)[0])
    others = np.concatenate([to_numpy(x), interior(single.primal, rng, 100)])
    tops = (level.values(like_data(single, others)) - level.bounds).max(1)
    worst = int(np.argmin(tops))
    seen = f"the bound is {found:.6g}, but max_i f_i - b_i = {tops[worst]:.6g} at a point of X."
    require(found <= tops[worst] + 1e-6 * (1.0 + abs(tops[worst])), seen, x=others[worst], y=y[0], a=a[0])
    return f"{found:.4g} at random duals, {tops.min():.4g} at the best of 100 points"


def _reference_optimum(problem: MinMaxProblem, rng: np.random.Generator) -> str:
    """The optimum by cvxpy is feasible by an exact pass, and no feasible point has a smaller objective."""
    if problem.data.size is None:
        raise Skip(_STREAM)
    single = single_run(problem)
    with exact_solutions() as (reference, _):
        best = reference.solve_exact(single)
    if best.status is Status.INFEASIBLE:
        raise Skip("cvxpy finds the problem infeasible")
    x, objective = best.x, float(best.objective)
    values = fresh_values(single, x)[0]
    scale = 1.0 + abs(objective)
    off = f"f_0 is {values[0]:.8g} there by an exact pass, {objective:.8g} by cvxpy."
    require(abs(values[0] - objective) <= 1e-5 * scale, off, x=x)
    require(values[1:].max() <= 1e-5 * scale, f"it violates a constraint by {values[1:].max():.3g}.", x=x)
    others = interior(single.primal, rng, 200)
    others = np.concatenate([others, x + 0.1 * (others - x), np.asarray(to_numpy(single.start_point(1)))])
    many = fresh_values(single, others)
    better = np.where(many[:, 1:].max(1) <= 0, objective - many[:, 0], -np.inf)
    seen = f"a feasible point has f_0 = {{least:.6g}} < {objective:.6g}."
    bounded(better, 1e-5 * scale, seen, x=others, least=many[:, 0])
    return f"f* = {objective:.6g}"


def _calls(problem: MinMaxProblem, rng: np.random.Generator) -> dict[str, Call]:
    xp, family = namespace(problem.data.like), problem.family
    y, a = _duals(family, rng, np.zeros(1), 5)
    drawn = {"x": interior(problem.primal, rng, 5), "y": y, "a": a}
    arrays = {name: xp.create(array) for name, array in drawn.items()}
    batch = converted(taken(_batch(problem), 0, 50), xp, "float64")
    call = Call(lambda batch, **given: _evaluated(family, batch, **given), arrays, batch)
    return {"family.evaluate()": call}


PROBLEM = (
    Check("fused", _AUTOGRAD, _fused),
    Check("start", _PARTS, _start),
    Check("draws", _DATA, _draws),
    Check("sampling", _DATA, _sampling),
    Check("refine", _PARTS, _refine),
    Check("lower_bounds", _LEVEL, _lower_bounds),
    Check("reference_optimum", _CLASS, _reference_optimum),
    *purity_checks(_calls),
)

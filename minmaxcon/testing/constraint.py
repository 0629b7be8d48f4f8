r"""Checks of one function of the problem class, seen through its set and a part of its data.

.. math:: f(x) = \max_{\alpha\in A} E F(x;z) + \langle\alpha, E\,G(x;z)\rangle - g(\alpha)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from minmaxcon.arrays import Namespace, engine, namespace
from minmaxcon.checks import finite_array
from minmaxcon.core import Batch, ConstraintFamily, Evaluation, Source, StochasticMinMaxConstraint
from minmaxcon.core.compiled import engine_family
from minmaxcon.core.constraint import SeparateFamily
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import DistanceGenerator, PerspectiveGenerator
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
    shown,
)
from minmaxcon.testing.generator import interior
from minmaxcon.testing.purity import Call, converted, first_rows, purity_checks, rows_of, taken, unchanged
from minmaxcon.testing.report import Report

__all__ = ["CONSTRAINT", "check_constraint", "constraint_part"]

_CLASS = "theory/problem_class.html#what-is-assumed"
_MAXIMUM = "theory/problem_class.html#why-the-maximum-is-kept"
_PARTS = "howto/new_problem.html#what-each-part-must-obey"
_AUTOGRAD = "howto/new_problem.html#without-autograd"

_ROWS = 20_000  # rows of finite data that are looked at at once
_STREAM = 4_096  # samples of a stream that stand for it
_SINGLES = 400  # samples that are looked at one by one
_BATCH = 50
_RUNS = 5


def check_constraint(constraint: Any, primal: Any, data: Any, *, start: Any = None, seed: int = 0) -> Report:
    r"""Check one function of the problem class on a set and data.

    Parameters
    ----------
    constraint : StochasticMinMaxConstraint
        What is checked; also an objective.
    primal : DistanceGenerator
        The set X, from which points are drawn.
    data : Source
        The samples; of finite data the first 20,000 rows are looked at, of a stream the first 4,096 samples.
    start : array_like (d,), optional
        Where solvers start; the centre of X by default.
    seed : int
        Seed of the points that are drawn.

    Returns
    -------
    Report
        Unbiased terms, gradients (by differences and by autograd), convexity in x for every :math:`\alpha` or the
        declared modulus, the maximum over :math:`\alpha` and the cvxpy form; purity, runs, precision and engines.

    Raises
    ------
    InvalidInput
        If an argument is not of its kind, or the start is no finite point of X.
    """
    part = constraint_part(constraint, primal, data, start)
    return report_of(part.label, [part], seed)


def constraint_part(
    constraint: Any, primal: Any, data: Any, start: Any = None, *, label: str | None = None, slopes: float = 2e-5
) -> Part:
    """Return the checks of a constraint on a set and data."""
    require_kind("constraint", constraint, StochasticMinMaxConstraint, "a StochasticMinMaxConstraint")
    require_kind("primal", primal, DistanceGenerator, "a DistanceGenerator such as Ball(3, 1.0)")
    require_kind("data", data, Source, 'a Source; wrap arrays: Finite({"name": array})')
    function = Function(constraint, primal, data, _begun(primal, start), slopes)
    return Part(str(constraint.name) if label is None else label, function, CONSTRAINT)


def _begun(primal: DistanceGenerator, start: Any) -> Any:
    """Return where solvers start, or refuse what is no point of X."""
    if start is None:
        return np.asarray(primal.center, dtype=np.float64)
    need = f"must be a finite point of X, an array of shape ({primal.dimension},)."
    point = finite_array("start", start, need)
    if point.shape != (primal.dimension,):
        raise InvalidInput("start", start, need)
    if not bool(np.all(primal.contains(point, 1e-6))):
        raise InvalidInput("start", start, "lies outside X: " + need)
    return point


@dataclass(frozen=True, eq=False)
class Function:
    """A constraint on a set, seen through part of its data, as functions of NumPy arrays in float64.

    ``start`` is the point where solvers start, ``slopes`` how exact slopes must be, relatively.
    """

    constraint: StochasticMinMaxConstraint
    primal: DistanceGenerator
    data: Source
    start: Any
    slopes: float

    @cached_property
    def xp(self) -> Namespace:
        """Functions of the data's own array engine."""
        return namespace(self.data.like)

    @cached_property
    def batch(self) -> dict[str, Any]:
        """Finite data, or the first rows of it; of a stream the first samples; in float64."""
        return converted(first_rows(self.data, _STREAM if self.data.size is None else _ROWS), self.xp, "float64")

    @property
    def inner_dimension(self) -> int:
        """Number of inner variables."""
        return 0 if self.constraint.dual is None else int(self.constraint.dual.dimension)

    def points(self, rng: np.random.Generator, count: int) -> Any:
        """Draw points of X."""
        return interior(self.primal, rng, count)

    def inner(self, rng: np.random.Generator, count: int) -> Any:
        """Draw inner variables, shape (count, p)."""
        block = self.constraint.dual
        return np.zeros((count, 0)) if block is None else np.asarray(block.sample(rng, count), dtype=np.float64)

    def pairs(self, rng: np.random.Generator, count: int) -> dict[str, Any]:
        """Draw points u and v of X, near and far, with inner variables alpha."""
        u, v, alpha = self.points(rng, count), self.points(rng, count), self.inner(rng, count)
        return {"u": u, "v": u + 10.0 ** rng.uniform(-2.0, 0.0, (count, 1)) * (v - u), "alpha": alpha}

    @cached_property
    def _compiled(self) -> ConstraintFamily | None:
        """The function as solvers evaluate it where the data's engine compiles; None where they call it as it is."""
        alone = SeparateFamily([self.constraint])
        family = engine_family(alone, self.data)
        return None if family is alone else family

    def evaluated(self, x: Any, batch: Batch) -> Evaluation:
        """Return F, G and the pullback at points of the data's engine, as the solvers get them."""
        if self._compiled is None or namespace(x) is not self.xp:
            return self.constraint.evaluate(x, batch)
        found = self._compiled.evaluate(x, batch)
        return Evaluation(found.F[..., 0], found.G, lambda y, a: found.pullback(y[..., None], a))

    def evaluate(self, x: Any, batch: Batch | None = None) -> Evaluation:
        """Return F, G and the pullback at NumPy points, as NumPy arrays."""
        found = self.evaluated(self.xp.create(x), self.batch if batch is None else batch)
        need = f"evaluate() must return mm.Evaluation; it returned {type(found).__name__}."
        require(isinstance(found, Evaluation), need)
        xp = self.xp

        def pullback(y: Any, a: Any) -> Any:
            return xp.to_numpy(found.pullback(xp.create(y), xp.create(a)))

        return Evaluation(xp.to_numpy(found.F), xp.to_numpy(found.G), pullback)

    def lagrangian(self, x: Any, alpha: Any) -> Any:
        r"""Return :math:`E F + \langle\alpha, E G\rangle` at x for one alpha (p,), or one a point."""
        found = self.evaluate(x)
        return found.F + np.vecdot(found.G, np.broadcast_to(alpha, found.G.shape))

    def slope(self, x: Any, alpha: Any) -> Any:
        """Return the gradient of :meth:`lagrangian`."""
        lead = x.shape[:-1]
        return self.evaluate(x).pullback(np.ones(lead), np.broadcast_to(alpha, (*lead, self.inner_dimension)))

    def maximum(self, found: Evaluation) -> Any:
        r"""Return :math:`f(x)`, by the closed form of the inner block."""
        block = self.constraint.dual
        return found.F if block is None else found.F + np.asarray(block.maximize(found.G)[1])

    def size(self, x: Any) -> float:
        """Return the size of the terms over the samples, in units of which rounding is measured."""
        found = self.evaluate(x)
        reach = 0.0 if self.constraint.dual is None else float(self.constraint.dual.radius)
        parts = (np.abs(found.F).max(initial=0.0), reach * np.linalg.norm(found.G, axis=-1).max(initial=0.0))
        return float(1e-3 + sum(parts))


def _shapes(function: Function, rng: np.random.Generator) -> str:
    """F has shape (...,), G shape (..., p), the gradient that of x; all finite where solvers start."""
    p = function.inner_dimension
    for name, x in (("the start", function.start), ("points of X", function.points(rng, 3))):
        found = function.evaluate(x)
        lead = x.shape[:-1]
        require(np.shape(found.F) == lead, f"F has shape {np.shape(found.F)} at {name}, not {lead}.")
        require(np.shape(found.G) == (*lead, p), f"G has shape {np.shape(found.G)} at {name}, not {(*lead, p)}.")
        slope = found.pullback(np.ones(lead), np.zeros((*lead, p)))
        require(np.shape(slope) == x.shape, f"the pullback has shape {np.shape(slope)} at {name}, not {x.shape}.")
        for part, values in (("F", found.F), ("G", found.G), ("the gradient", slope)):
            require(np.isfinite(values).all(), f"{part} is not finite at {name}.", x=x)
    return f"p = {p}, d = {function.start.size}"


def _terms(function: Function, rng: np.random.Generator) -> str:
    """terms() and evaluate() give the same F and G."""
    if type(function.constraint).terms is StochasticMinMaxConstraint.terms:
        raise Skip("evaluate() alone is given")
    points = function.points(rng, 4)
    x, found = function.xp.create(points), function.evaluate(points)
    with unchanged("terms()", {"x": x, **function.batch}):
        mean, moment = function.constraint.terms(x, function.batch)
    for name, one, other in (("F", mean, found.F), ("G", x[..., :0] if moment is None else moment, found.G)):
        far = apart(one, other)
        require(far <= 1e-9, f"{name} differs by {far:.2g}, relatively.", x=points[0])
    return "4 points"


def _unbiased(function: Function, rng: np.random.Generator) -> str:
    """The mean over single samples, and over any split, is the value of all: each enters with 1/B."""
    count = min(rows_of(function.batch), _SINGLES)
    begin = int(rng.integers(rows_of(function.batch) - count + 1))
    batch = taken(function.batch, begin, begin + count)
    x = function.points(rng, 2)
    y, a = rng.uniform(0.5, 1.5, 2), function.inner(rng, 2)

    def means(piece: Any) -> list[Any]:
        found = function.evaluate(x, piece)
        return [found.F, found.G, found.pullback(y, a)]

    whole = means(batch)
    for size in (1, 7, max(count // 2, 1)):
        total = [np.zeros_like(part) for part in whole]
        magnitude = [np.zeros_like(part) for part in whole]
        for left in range(0, count, size):
            piece = taken(batch, left, min(left + size, count))
            for i, part in enumerate(means(piece)):
                total[i] += rows_of(piece) / count * part
                magnitude[i] += rows_of(piece) / count * np.abs(part)
        for name, one, other, scale in zip(("F", "G", "the gradient"), total, whole, magnitude, strict=True):
            if one.size and not np.abs(one - other).max() <= 1e-10 * max(float(scale.max()), 1e-9):
                where = np.unravel_index(int(np.argmax(np.abs(one - other))), one.shape)
                seen = f"batches of {size} give {name} = {one[where]:.10g} on average, all at once {other[where]:.10g}."
                raise Fault(seen, x=x[where[0]], samples=count)
    return f"{count} samples alone, by 7 and by halves"


def _gradient(function: Function, rng: np.random.Generator) -> str:
    """The gradient is the derivative: between the backward and the forward difference."""
    count, h = 30, 1e-5
    first, second = function.points(rng, count), function.points(rng, count)
    middle, along = 0.5 * (first + second), second - first
    y, a = rng.uniform(0.5, 1.5, count), rng.uniform(0.5, 1.5, (count, 1)) * function.inner(rng, count)

    def value(x: Any) -> Any:
        found = function.evaluate(x)
        return y * found.F + np.vecdot(a, found.G)

    said = np.vecdot(function.evaluate(middle).pullback(y, a), along)
    here, ahead, behind = value(middle), value(middle + h * along), value(middle - h * along)
    forward, backward = (ahead - here) / h, (here - behind) / h
    # At a kink any value between the one-sided derivatives is a (sub)gradient.
    least, most = np.minimum(forward, backward), np.maximum(forward, backward)
    excess = np.maximum(said - most, least - said) / (np.maximum(np.abs(least), np.abs(most)) + function.size(middle))
    seen = "<gradient, d> = {said:.6g}, differences give {backward:.6g} and {forward:.6g}."
    numbers = {"said": said, "backward": backward, "forward": forward}
    bounded(excess, function.slopes, seen, x=middle, d=along, y=y, a=a, **numbers)
    return f"{count} points, directions and weights"


def _autograd(function: Function, rng: np.random.Generator) -> str:
    """evaluate()'s gradient is that of autograd through terms()."""
    xp = engine("torch")
    rows = taken(function.batch, 0, 2_000)
    batch = converted(rows, xp, "float64")
    x = function.points(rng, 4)
    y, a = rng.uniform(0.5, 1.5, 4), function.inner(rng, 4)
    try:
        found = StochasticMinMaxConstraint.evaluate(function.constraint, xp.create(x), batch)
        true = xp.to_numpy(found.pullback(xp.create(y), xp.create(a)))
    except InvalidInput as error:
        raise Skip(f"terms() is not written for autograd: {error}") from None
    except Exception as error:  # whatever NumPy code does with tensors
        raise Skip(f"terms() does not take torch tensors: {type(error).__name__}") from None
    mine = function.evaluate(x, rows).pullback(y, a)
    if apart(mine, true) > 1e-8:
        along, h = function.points(rng, 4) - x, 1e-5
        ahead, behind = function.evaluate(x + h * along, rows), function.evaluate(x - h * along, rows)
        slope = (y * (ahead.F - behind.F) + np.vecdot(a, ahead.G - behind.G)) / (2.0 * h)
        off, theirs = (np.abs(np.vecdot(found, along) - slope).max() for found in (mine, true))
        if off < 1e-2 * theirs:
            raise Skip("autograd does not see all of terms(), and differences agree with evaluate()")
        seen = f"they differ by {apart(mine, true):.2g}, relatively."
        raise Fault(seen, x=x[0], gradient=mine[0], autograd=true[0])
    return "4 points"


_UNDECLARED = "no convexity is declared, so no lower bound is claimed"


def _modulus(function: Function) -> float:
    """Return the declared modulus, infinite where there is none."""
    modulus = float(function.constraint.modulus)
    require(modulus >= 0, f"weak_convexity is {modulus:g}; it must be at least 0.")
    return modulus


def _convex_name(modulus: float) -> str:
    return "the function" if modulus == 0 else f"the function plus {modulus:g}/2 |x|^2"


def _convexity(function: Function, rng: np.random.Generator) -> str:
    """E F + <alpha, E G> + modulus/2 |x|^2 is convex in x for every alpha: chords lie above."""
    declared, count = _modulus(function), 150
    modulus = declared if np.isfinite(declared) else 0.0  # where nothing is declared: would it be convex?
    drawn = function.pairs(rng, count)

    def excess(u: Any, v: Any, alpha: Any) -> Any:
        ends = function.lagrangian(u, alpha), function.lagrangian(v, alpha)
        chord = 0.5 * ends[0] + 0.5 * ends[1] + modulus / 8.0 * np.vecdot(u - v, u - v)
        return function.lagrangian(0.5 * (u + v), alpha) - chord

    tolerance = 1e-11 * function.size(drawn["u"])
    worst = at(excess(**drawn), tolerance)
    if worst is None:
        if np.isfinite(declared):
            return f"{count} chords, modulus {modulus:g}"
        raise Skip(f"{_UNDECLARED}; {count} chords do not refute it: declare convex = True if it is convex")
    small = _readable(
        {name: values[worst] for name, values in drawn.items()}, lambda **z: bool(excess(**z) > 10 * tolerance)
    )
    gap = float(excess(**small))
    seen = f"half-way between u and v {_convex_name(modulus)} exceeds the chord by {gap:.3g}"
    if np.isfinite(declared):
        raise Fault(f"{seen}.", **small)
    raise Skip(f"{_UNDECLARED}, and it is not convex: {seen} ({shown(**small)})")


def _readable(values: dict[str, Any], still: Callable[..., bool]) -> dict[str, Any]:
    """Round the numbers of a counterexample as far as it remains one, as ``still`` tells."""
    for digits in range(4):
        rounded = {name: np.round(value, digits) for name, value in values.items()}
        with suppress(Exception):  # a rounded point may lie where the function is not defined
            if still(**rounded):
                return rounded
    return values


def _tangents(function: Function, rng: np.random.Generator) -> str:
    """E F + <alpha, E G> + modulus/2 |x|^2 lies above its tangents for every alpha."""
    modulus, count = _modulus(function), 150
    if np.isinf(modulus):
        raise Skip(_UNDECLARED)
    drawn = function.pairs(rng, count)
    u, v, alpha = drawn.values()
    tangent = function.lagrangian(u, alpha) + np.vecdot(function.slope(u, alpha), v - u)
    excess = tangent - 0.5 * modulus * np.vecdot(u - v, u - v) - function.lagrangian(v, alpha)
    seen = f"at v {_convex_name(modulus)} lies below its tangent at u by {{excess:.3g}}."
    bounded(excess, 1e-9 * function.size(u), seen, **drawn)
    return f"{count} tangents, modulus {modulus:g}"


def _curvature(function: Function, rng: np.random.Generator) -> str:
    """The modulus declared is not below the largest negative curvature (smallest eigenvalues of Hessians)."""
    modulus, tries = _modulus(function), 12
    points = function.points(rng, max(tries, 25))
    basis = _directions(function.points(rng, 80), 24, rng)
    if len(basis) == 0:
        raise Skip("X is a single point")
    worst, example = np.inf, {}
    inner, center = function.inner(rng, tries), np.asarray(function.primal.center)
    for x, alpha in zip(0.45 * (points[:tries] + function.start) + 0.1 * center, inner, strict=True):
        least, along = smallest_curvature(partial(function.slope, alpha=alpha), x, basis)
        if least < worst:
            worst, example = least, {"x": x, "direction": along, "alpha": alpha}
    scale = function.size(points)
    told = f"{tries} Hessians in {len(basis)} directions, smallest eigenvalue {worst:.3g}"
    bent = max(-worst, 0.0) if worst < -1e-5 * scale else 0.0
    if np.isinf(modulus):
        remedy = f"; a modulus, weak_convexity, must be at least {bent:.3g}" if bent else ""
        raise Skip(f"{_UNDECLARED}; {told}{remedy}")
    seen = f"the curvature is {worst:.6g} in a direction; the modulus declared is {modulus:g}."
    require(worst >= -modulus * (1.0 + 1e-4) - 1e-5 * scale, seen, **example)
    if modulus <= max(10.0 * bent, 1e-3):
        return told
    remedy = "a smaller modulus needs smaller steps" if bent else "declare convex = True to get lower bounds"
    return f"{told}; declared {modulus:g}, largest seen {bent:.3g}: {remedy}"


def _directions(points: Any, most: int, rng: np.random.Generator) -> Any:
    """Return orthonormal directions (k, d) within the set that the points span, at most ``most``."""
    chords = points[1:] - points[:-1]
    if chords.shape[1] > most:
        chords = rng.standard_normal((most, len(chords))) @ chords
    _, sizes, rows = np.linalg.svd(chords, full_matrices=False)
    return rows[sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)][:most]


def smallest_curvature(gradient: Callable[[Any], Any], x: Any, basis: Any, h: float = 1e-5) -> tuple[float, Any]:
    """Return the smallest curvature of a function at x within orthonormal directions (k, d), and where it points.

    The direction is an eigenvector of the Hessian by central differences of the gradient. Across kinks that matrix
    means little, so the curvature is taken along the direction alone: there a convex function's is never negative.
    """
    moved = np.concatenate([x + h * basis, x - h * basis])
    slopes = np.asarray(gradient(moved))
    matrix = (slopes[: len(basis)] - slopes[len(basis) :]) @ basis.T / (2.0 * h)
    along = np.linalg.eigh(0.5 * (matrix + matrix.T))[1][:, 0] @ basis
    ahead, behind = np.asarray(gradient(np.stack([x + h * along, x - h * along])))
    return float((ahead - behind) @ along / (2.0 * h)), along


def _worst_case(function: Function, rng: np.random.Generator) -> str:
    """f(x) = E F + max of <alpha, E G> - g(alpha): no alpha gives more, and cvxpy finds the same."""
    block = function.constraint.dual
    if block is None:
        raise Skip("there are no inner variables")
    x = function.points(rng, 5)
    found, scale = function.evaluate(x), function.size(x)
    value, alpha = function.maximum(found), function.inner(rng, 300)
    others = found.F[:, None] + found.G @ alpha.T - np.asarray(block.penalty(alpha))
    most, best = others.max(1), alpha[others.argmax(1)]
    seen = "{value:.6g} is said, {most:.6g} is attained."
    bounded((most - value) / scale, 1e-9, seen, x=x, alpha=best, value=value, most=most)
    alone = PerspectiveGenerator([block])
    with exact_solutions() as (reference, _):
        for i in range(2):
            best = reference.reference_support(alone, found.F[i : i + 1], found.G[i])[1]
            seen = f"{value[i]:.7g} is said, cvxpy finds {best:.7g}."
            require(abs(best - value[i]) <= 1e-6 * scale, seen, x=x[i])
    return "5 points, 300 alphas; 2 by cvxpy"


def _reference_value(function: Function, rng: np.random.Generator) -> str:
    """cvxpy_value(cp, x, data) is the same function f(x)."""
    if function.data.size is None:
        raise Skip("the data are a stream")
    if function.data.size > _ROWS:
        raise Skip(f"only the first {rows_of(function.batch)} of {function.data.size} rows are looked at")
    x = np.concatenate([function.start[None, :], function.points(rng, 4)])
    scale = function.size(x)
    with exact_solutions() as (_, cp):
        for point, mine in zip(x, function.maximum(function.evaluate(x)), strict=True):
            variable = cp.Variable(point.size)
            variable.value = point
            form = function.constraint.cvxpy_value(cp, variable, function.data)
            said = getattr(form, "value", form)
            if said is None:  # it has variables of its own, over which it is a minimum
                problem = cp.Problem(cp.Minimize(form), [variable == point])
                said = problem.solve(solver=cp.CLARABEL)
            said = float(np.asarray(said).item())
            seen = f"cvxpy_value is {said:.8g}, F plus the maximum {mine:.8g}."
            require(abs(said - mine) <= 1e-6 * scale, seen, x=point)
            require(getattr(form, "is_convex", lambda: True)(), "cvxpy does not find the expression convex.")
    return "5 points"


def _single_sample(function: Function, rng: np.random.Generator) -> str:
    """A batch of a single sample works and is finite."""
    count = rows_of(function.batch)
    x, a = function.points(rng, 1)[0], function.inner(rng, 1)[0]
    for row in rng.permutation(count)[:20]:
        found = function.evaluate(x, taken(function.batch, int(row), int(row) + 1))
        parts = {"F": found.F, "G": found.G, "the gradient": found.pullback(np.ones(()), a)}
        for name, part in parts.items():
            require(np.isfinite(part).all(), f"{name} is not finite on sample {row} alone.", x=x)
    return f"{min(count, 20)} samples"


def _calls(function: Function, rng: np.random.Generator) -> dict[str, Call]:
    def evaluate(batch: Batch, x: Any, y: Any, a: Any) -> dict[str, Any]:
        found = function.evaluated(x, batch)
        return {"F": found.F, "G": found.G, "the gradient": found.pullback(y, a)}

    y, a = rng.uniform(0.5, 1.5, _RUNS), function.inner(rng, _RUNS)
    drawn = {"x": function.points(rng, _RUNS), "y": y, "a": a}
    arrays = {name: function.xp.create(array) for name, array in drawn.items()}
    batch = taken(function.batch, 0, _BATCH)
    return {"evaluate()": Call(evaluate, arrays, batch, distinct={"the gradient": ("x",)})}


_FIRST = ("shapes",)
_SMOOTH = ("shapes", "gradient")

CONSTRAINT = (
    Check("shapes", _PARTS, _shapes),
    Check("terms", _PARTS, _terms, _FIRST),
    Check("unbiased", _PARTS, _unbiased, _FIRST),
    Check("gradient", _AUTOGRAD, _gradient, _FIRST),
    Check("autograd", _AUTOGRAD, _autograd, _FIRST),
    Check("convexity", _CLASS, _convexity, _FIRST),
    Check("tangents", _CLASS, _tangents, _SMOOTH),
    Check("curvature", _CLASS, _curvature, _SMOOTH),
    Check("worst_case", _MAXIMUM, _worst_case, _FIRST),
    Check("reference_value", _MAXIMUM, _reference_value, _FIRST),
    *purity_checks(_calls, _FIRST),
    Check("single_sample", _PARTS, _single_sample, _FIRST),
)

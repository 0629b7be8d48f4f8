"""What a constraint must satisfy: unbiased terms, true gradients, the declared convexity, the right maximum."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.core import StochasticMinMaxConstraint
from minmaxcon.errors import InvalidInput, Unsupported
from minmaxcon.geometry import PerspectiveGenerator
from minmaxcon.testing.functions import Function, converted, rows_of, taken
from minmaxcon.testing.harness import Fault, Skip, Suite, apart, at, cvxpy_module, reference, require, shown
from minmaxcon.testing.search import directions, readable, smallest_curvature

__all__ = ["CONSTRAINT"]

CONSTRAINT = Suite()

_CLASS = "theory/problem_class.html#what-is-assumed"
_MAXIMUM = "theory/problem_class.html#why-the-maximum-is-kept"
_PARTS = "howto/new_problem.html#what-each-part-must-obey"
_AUTOGRAD = "howto/new_problem.html#without-autograd"

_SINGLES = 400


@CONSTRAINT.check(
    "F has shape (...,), G shape (..., p), the gradient that of x; all finite where solvers start.", _PARTS
)
def shapes(function: Function, rng: np.random.Generator) -> str:
    p = function.inner_dimension
    for name, x in (("the start", function.start), ("points of X", function.points(rng, 3))):
        found = function.evaluate(x)
        lead = x.shape[:-1]
        require(np.shape(found.F) == lead, f"F has shape {np.shape(found.F)} at {name}, not {lead}.")
        require(np.shape(found.G) == (*lead, p), f"G has shape {np.shape(found.G)} at {name}, not {(*lead, p)}.")
        slope = found.pullback(np.ones(lead), np.zeros((*lead, p)))
        require(np.shape(slope) == x.shape, f"the pullback has shape {np.shape(slope)} at {name}, not {x.shape}.")
        for part, values in (("F", found.F), ("G", found.G), ("the gradient", slope)):
            require(np.isfinite(values).all(), f"{part} is not finite at {name}.", shown(x=x))
    return f"p = {p}, d = {function.start.size}"


@CONSTRAINT.check("terms() and evaluate() give the same F and G.", _PARTS)
def terms(function: Function, rng: np.random.Generator) -> str:
    x = function.points(rng, 4)
    (mean, moment), found = function.terms(x, function.batch), function.evaluate(x)
    for name, one, other in (("F", mean, found.F), ("G", moment, found.G)):
        require(apart(one, other) <= 1e-9, f"{name} differs by {apart(one, other):.2g}, relatively.", shown(x=x[0]))
    return "4 points"


def _means(function: Function, x: Any, batch: Any, y: Any, a: Any) -> list[Any]:
    """Return F, G and the gradient of a batch; the gradient of the sum with weights y and a."""
    found = function.evaluate(x, batch)
    return [found.F, found.G, found.pullback(y, a)]


@CONSTRAINT.check(
    "The mean over single samples, and over any split, is the value of all: each enters with 1/B.", _PARTS
)
def unbiased(function: Function, rng: np.random.Generator) -> str:
    count = min(rows_of(function.batch), _SINGLES)
    begin = int(rng.integers(rows_of(function.batch) - count + 1))
    batch = taken(function.batch, begin, begin + count)
    x = function.points(rng, 2)
    y, a = rng.uniform(0.5, 1.5, 2), function.inner(rng, 2)
    whole = _means(function, x, batch, y, a)
    for size in (1, 7, max(count // 2, 1)):
        total = [np.zeros_like(part) for part in whole]
        magnitude = [np.zeros_like(part) for part in whole]
        for left in range(0, count, size):
            piece = taken(batch, left, min(left + size, count))
            for i, part in enumerate(_means(function, x, piece, y, a)):
                total[i] += rows_of(piece) / count * part
                magnitude[i] += rows_of(piece) / count * np.abs(part)
        for name, one, other, scale in zip(("F", "G", "the gradient"), total, whole, magnitude, strict=True):
            if one.size and not np.abs(one - other).max() <= 1e-10 * max(float(scale.max()), 1e-9):
                where = np.unravel_index(int(np.argmax(np.abs(one - other))), one.shape)
                seen = f"batches of {size} give {name} = {one[where]:.10g} on average, all at once {other[where]:.10g}."
                raise Fault(seen, shown(x=x[where[0]], samples=count))
    return f"{count} samples alone, by 7 and by halves"


@CONSTRAINT.check("The gradient is the derivative: between the backward and the forward difference.", _AUTOGRAD)
def gradient(function: Function, rng: np.random.Generator) -> str:
    count, h = 30, 1e-5
    first, second = function.points(rng, count), function.points(rng, count)
    middle, along = 0.5 * (first + second), second - first
    y, a = rng.uniform(0.5, 1.5, count), rng.uniform(0.5, 1.5, (count, 1)) * function.inner(rng, count)

    def value(x: Any) -> Any:
        found = function.evaluate(x)
        return y * found.F + np.vecdot(a, found.G)

    said = np.vecdot(function.evaluate(middle).pullback(y, a), along)
    here, ahead, behind = value(middle), value(middle + h * along), value(middle - h * along)
    sides = np.stack([(ahead - here) / h, (here - behind) / h])
    # At a kink any value between the one-sided derivatives is a (sub)gradient.
    scale = np.abs(sides).max(0) + function.size(middle)
    excess = np.maximum(said - sides.max(0), sides.min(0) - said) / scale
    worst = at(excess, function.slopes)
    if worst is not None:
        seen = f"<gradient, d> = {said[worst]:.6g}, differences give {sides[1, worst]:.6g} and {sides[0, worst]:.6g}."
        raise Fault(seen, shown(x=middle[worst], d=along[worst], y=y[worst], a=a[worst]))
    return f"{count} points, directions and weights"


@CONSTRAINT.check("evaluate()'s gradient is that of autograd through terms().", _AUTOGRAD)
def autograd(function: Function, rng: np.random.Generator) -> str:
    from minmaxcon.arrays import engine

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
        raise Fault(seen, shown(x=x[0], gradient=mine[0], autograd=true[0]))
    return "4 points"


def _modulus(function: Function) -> float:
    modulus = function.constraint.modulus
    if np.isinf(modulus):
        raise Skip("no convexity is declared, so no lower bound is claimed: declare convex = True where it is")
    require(modulus >= 0, f"weak_convexity is {modulus:g}; it must be at least 0.")
    return modulus


def _convex_name(modulus: float) -> str:
    return "the function" if modulus == 0 else f"the function plus {modulus:g}/2 |x|^2"


@CONSTRAINT.check("E F + <alpha, E G> + modulus/2 |x|^2 is convex in x for every alpha: chords lie above.", _CLASS)
def convexity(function: Function, rng: np.random.Generator) -> str:
    modulus, count = _modulus(function), 150
    u, v, alpha = function.points(rng, count), function.points(rng, count), function.inner(rng, count)
    near = 10.0 ** rng.uniform(-2.0, 0.0, (count, 1))
    v = u + near * (v - u)

    def excess(u: Any, v: Any, alpha: Any) -> Any:
        value = function.lagrangian(alpha)
        chord = 0.5 * value(u) + 0.5 * value(v) + modulus / 8.0 * np.vecdot(u - v, u - v)
        return value(0.5 * (u + v)) - chord

    tolerance = 1e-11 * function.size(u)
    found = excess(u, v, alpha)
    worst = at(found, tolerance)
    if worst is not None:
        small = readable(
            {"u": u[worst], "v": v[worst], "alpha": alpha[worst]}, lambda **z: bool(excess(**z) > 10 * tolerance)
        )
        gap = float(excess(**small))
        raise Fault(f"half-way between u and v {_convex_name(modulus)} exceeds the chord by {gap:.3g}.", shown(**small))
    return f"{count} chords, modulus {modulus:g}"


@CONSTRAINT.check(
    "E F + <alpha, E G> + modulus/2 |x|^2 lies above its tangents for every alpha.", _CLASS, after=("gradient",)
)
def tangents(function: Function, rng: np.random.Generator) -> str:
    modulus, count = _modulus(function), 150
    u, v, alpha = function.points(rng, count), function.points(rng, count), function.inner(rng, count)
    v = u + 10.0 ** rng.uniform(-2.0, 0.0, (count, 1)) * (v - u)
    tolerance = 1e-9 * function.size(u)
    slopes, value = function.gradient(alpha)(u), function.lagrangian(alpha)
    tangent = value(u) + np.vecdot(slopes, v - u) - 0.5 * modulus * np.vecdot(u - v, u - v)
    worst = at(tangent - value(v), tolerance)
    if worst is not None:
        gap = float((tangent - value(v))[worst])
        seen = f"at v {_convex_name(modulus)} lies below its tangent at u by {gap:.3g}."
        raise Fault(seen, shown(u=u[worst], v=v[worst], alpha=alpha[worst]))
    return f"{count} tangents, modulus {modulus:g}"


@CONSTRAINT.check(
    "The modulus declared is not below the largest negative curvature (smallest eigenvalues of Hessians).",
    _CLASS,
    after=("gradient",),
)
def curvature(function: Function, rng: np.random.Generator) -> str:
    modulus, tries = _modulus(function), 12
    points = function.points(rng, max(tries, 25))
    basis = directions(function.points(rng, 80), 24, rng)
    if len(basis) == 0:
        raise Skip("X is a single point")
    worst, example = np.inf, ""
    inner = function.inner(rng, tries)
    for x, alpha in zip([0.5 * (p + function.start) for p in points[:tries]], inner, strict=True):
        x = 0.9 * x + 0.1 * np.asarray(function.primal.center)
        least, along = smallest_curvature(function.gradient(alpha), x, basis)
        if least < worst:
            worst, example = least, shown(x=x, direction=along, alpha=alpha)
    scale = function.size(points)
    seen = f"the curvature is {worst:.6g} in a direction; the modulus declared is {modulus:g}."
    require(worst >= -modulus * (1.0 + 1e-4) - 1e-5 * scale, seen, example)
    told = f"{tries} Hessians in {len(basis)} directions, smallest eigenvalue {worst:.3g}"
    bent = max(-worst, 0.0)
    if modulus <= max(10.0 * bent, 1e-3):
        return told
    remedy = (
        "declare convex = True to get lower bounds" if bent <= 1e-5 * scale else "a smaller modulus needs smaller steps"
    )
    return f"{told}; declared {modulus:g}, largest seen {bent if bent > 1e-5 * scale else 0.0:.3g}: {remedy}"


@CONSTRAINT.check(
    "f(x) = E F + max of <alpha, E G> - g(alpha): no alpha gives more, and cvxpy finds the same.", _MAXIMUM
)
def worst_case(function: Function, rng: np.random.Generator) -> str:
    block = function.constraint.dual
    if block is None:
        raise Skip("there are no inner variables")
    x = function.points(rng, 5)
    found, scale = function.evaluate(x), function.size(x)
    value = found.F + np.asarray(block.maximize(found.G)[1])
    alpha = function.inner(rng, 300)
    others = found.F[:, None] + found.G @ alpha.T - np.asarray(block.penalty(alpha))
    worst = at((others - value[:, None]) / scale, 1e-9)
    if worst is not None:
        i, j = divmod(worst, len(alpha))
        raise Fault(f"{value[i]:.6g} is said, {others[i, j]:.6g} is attained.", shown(x=x[i], alpha=alpha[j]))
    exact, alone = reference(), PerspectiveGenerator([block])
    for i in range(2):
        best = exact.reference_support(alone, found.F[i : i + 1], found.G[i])[1]
        require(abs(best - value[i]) <= 1e-6 * scale, f"{value[i]:.7g} is said, cvxpy finds {best:.7g}.", shown(x=x[i]))
    return "5 points, 300 alphas; 2 by cvxpy"


@CONSTRAINT.check("cvxpy_value(cp, x, data) is the same function f(x).", _MAXIMUM)
def reference_value(function: Function, rng: np.random.Generator) -> str:
    if function.data.size is None:
        raise Skip("the data are a stream")
    if not function.complete:
        raise Skip(f"only the first {rows_of(function.batch)} of {function.data.size} rows are looked at")
    cp, block, d = cvxpy_module(), function.constraint.dual, function.start.size
    x = np.concatenate([function.start[None, :], function.points(rng, 4)])
    found, scale = function.evaluate(x), function.size(x)
    value = found.F if block is None else found.F + np.asarray(block.maximize(found.G)[1])
    for point, mine in zip(x, value, strict=True):
        variable = cp.Variable(d)
        variable.value = point
        try:
            form = function.constraint.cvxpy_value(cp, variable, function.data)
        except Unsupported as reason:
            raise Skip(str(reason)) from None
        said = getattr(form, "value", form)
        if said is None:  # it has variables of its own, over which it is a minimum
            problem = cp.Problem(cp.Minimize(form), [variable == point])
            said = problem.solve(solver=cp.CLARABEL)
        said = float(np.asarray(said).item())
        seen = f"cvxpy_value is {said:.8g}, F plus the maximum {mine:.8g}."
        require(abs(said - mine) <= 1e-6 * scale, seen, shown(x=point))
        require(getattr(form, "is_convex", lambda: True)(), "cvxpy does not find the expression convex.")
    return "5 points"

r"""Checks of geometries, and of every generator: also of inner blocks and the perspective generator.

.. math:: V(u, v) = \omega(u) - \omega(v) - \langle\nabla\omega(v), u - v\rangle \ge \tfrac12|u - v|^2
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.geometry import DistanceGenerator, InnerBlock, PerspectiveGenerator
from minmaxcon.testing.block import BLOCK, DUAL, largest_value
from minmaxcon.testing.check import Check, Part, bounded, exact_solutions, report_of, require, require_kind
from minmaxcon.testing.purity import Call, purity_checks
from minmaxcon.testing.report import Report

__all__ = ["GENERATOR", "check_generator", "generator_part", "interior"]

_GEOMETRY = "howto/conformance.html#geometry"
_DIAMETER = "theory/generator.html#divergence-diameter"
_STEP = "howto/new_generator.html#what-must-hold"

_COUNT = 200
_RUNS = 6


def check_generator(generator: Any, *, seed: int = 0) -> Report:
    r"""Check a geometry, an inner block, or the perspective generator over the levels of a problem.

    Parameters
    ----------
    generator : DistanceGenerator, InnerBlock or PerspectiveGenerator
        What is checked.
    seed : int
        Seed of the points, steps and linear terms that are drawn.

    Returns
    -------
    Report
        Set, generator, strong convexity at the declared modulus in the declared norm, diameter, prox (three-point
        inequality, and against cvxpy where it is installed), linear minimum; purity, runs, precision and engines.

    Raises
    ------
    InvalidInput
        If it is no generator.
    """
    return report_of(repr(generator), [generator_part(generator)], seed)


def generator_part(generator: Any, label: str = "generator") -> Part:
    """Return the checks of a geometry, an inner block or a perspective generator."""
    need = "a DistanceGenerator, an InnerBlock or a PerspectiveGenerator"
    require_kind("generator", generator, (DistanceGenerator, InnerBlock, PerspectiveGenerator), need)
    if isinstance(generator, DistanceGenerator):
        return Part(label, generator, GENERATOR)
    if isinstance(generator, InnerBlock):
        return Part(label, generator, BLOCK)
    return Part(label, generator, DUAL)


def interior(generator: DistanceGenerator, rng: np.random.Generator, count: int) -> Any:
    """Draw points that keep a little away from the boundary, where an entropy's gradient is finite."""
    return 0.95 * generator.sample(rng, count) + 0.05 * np.asarray(generator.center)


def _size(generator: DistanceGenerator) -> float:
    return 1.0 + float(generator.squared_diameter) + float(np.abs(generator.center).max())


def _bregman(generator: DistanceGenerator, u: Any, v: Any) -> Any:
    return np.asarray(generator.value(u) - generator.value(v)) - np.vecdot(np.asarray(generator.gradient(v)), u - v)


def _contains(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """The centre and sample(rng, count) lie in X, and contains() tells points of X from points outside."""
    points = np.asarray(generator.sample(rng, _COUNT))
    require(points.shape == (_COUNT, generator.dimension), f"sample has shape {points.shape}.")
    require(generator.contains(np.asarray(generator.center)), "the centre is outside.", center=generator.center)
    inside = np.asarray(generator.contains(points))
    require(inside.shape == (_COUNT,), f"contains() of {_COUNT} points has shape {inside.shape}.")
    require(inside.all(), "a drawn point is outside.", u=points[int(np.argmin(inside))])
    edge = np.asarray(generator.linear_minimum(rng.standard_normal(points.shape))[1])
    offset = edge - generator.center
    beyond = generator.center + 1.5 * offset
    wide = np.abs(offset).max(1) > 1e-3
    wrong = np.asarray(generator.contains(beyond)) & wide
    seen = "contains() accepts a point half as far again from the centre as the edge of X."
    require(not wrong.any(), seen, u=beyond[int(np.argmax(wrong))])
    return f"{_COUNT} points inside, {int(wide.sum())} outside"


def _center(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """The centre minimises the generator on X."""
    points = np.concatenate([generator.sample(rng, _COUNT), interior(generator, rng, _COUNT)])
    excess = float(generator.value(np.asarray(generator.center))) - np.asarray(generator.value(points))
    size = _size(generator)
    bounded(excess, 1e-9 * size, "omega is smaller by {excess:.3g} elsewhere.", u=points)
    return f"{2 * _COUNT} points"


def _gradient(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """gradient() is the derivative of value(): central differences agree."""
    first, second = interior(generator, rng, _COUNT), interior(generator, rng, _COUNT)
    middle, along = 0.5 * (first + second), second - first
    h = 1e-5
    forward, backward = (np.asarray(generator.value(middle + s * h * along)) for s in (1.0, -1.0))
    true, said = (forward - backward) / (2 * h), np.vecdot(np.asarray(generator.gradient(middle)), along)
    excess = np.abs(true - said) / (_size(generator) + np.abs(said))
    seen = "<gradient, d> = {said:.6g}, differences give {true:.6g}."
    bounded(excess, 1e-6, seen, u=middle, d=along, said=said, true=true)
    return f"{_COUNT} points and directions"


def _divergence(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """divergence(u, v) = value(u) - value(v) - <gradient(v), u - v>."""
    u, v = generator.sample(rng, _COUNT), interior(generator, rng, _COUNT)
    said, true = np.asarray(generator.divergence(u, v)), _bregman(generator, u, v)
    excess = np.abs(said - true) / (_size(generator) + np.abs(true))
    bounded(excess, 1e-9, "{said:.6g} instead of {true:.6g}.", u=u, v=v, said=said, true=true)
    return f"{_COUNT} pairs"


def _strong_convexity(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """V(u, v) >= 1/2 norm(u - v)^2: omega is 1-strongly convex in the norm that it declares."""
    count = 20 * _COUNT
    v, far = interior(generator, rng, count), generator.sample(rng, count)
    u = v + 10.0 ** rng.uniform(-3.0, 0.0, (count, 1)) * (far - v)
    found, half = _bregman(generator, u, v), 0.5 * np.asarray(generator.norm(u - v)) ** 2
    excess = (half * (1.0 - 1e-6) - found) / _size(generator)
    seen = "V(u, v) = {found:.6g} < {half:.6g} = 1/2 norm(u - v)^2."
    bounded(excess, 1e-12, seen, u=u, v=v, found=found, half=half)
    return f"{count} pairs, far and near"


def _norms(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """norm() is a norm, and <g, u> <= dual_norm(g) norm(u)."""
    u, w, g = (rng.standard_normal((_COUNT, generator.dimension)) for _ in range(3))
    length, dual = np.asarray(generator.norm(u)), np.asarray(generator.dual_norm(g))
    aligned = np.concatenate([g, np.sign(g), np.eye(generator.dimension)[np.abs(g).argmax(1)] * np.sign(g)])
    products = np.vecdot(np.tile(g, (3, 1)), aligned) / np.asarray(generator.norm(aligned)) / np.tile(dual, 3) - 1.0
    laws = {
        "norm(2 u) is not 2 norm(u).": np.abs(np.asarray(generator.norm(2.0 * u)) - 2.0 * length) / length,
        "norm(u + w) > norm(u) + norm(w).": (generator.norm(u + w) - length - generator.norm(w)) / length,
        "<g, u> > dual_norm(g) norm(u).": products.reshape(3, _COUNT).max(0),
    }
    for seen, excess in laws.items():
        bounded(excess, 1e-9, seen, u=u, w=w, g=g)
    return f"{_COUNT} vectors"


def _diameter(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """squared_diameter = max omega - min omega on X: neither less nor more."""

    def corner(direction: Any) -> Any:
        return np.asarray(generator.linear_minimum(-direction)[1])

    starts = generator.sample(rng, 60)
    point, top = largest_value(generator.value, generator.gradient, corner, starts)
    found = top - float(generator.value(np.asarray(generator.center)))
    declared = float(generator.squared_diameter)
    under = f"declared {declared:.6g}, but omega - min omega is {found:.6g} at a point of X."
    require(declared >= found - 1e-9 * _size(generator), under, u=point)
    over = f"declared {declared:.6g}, but no point was found above {found:.6g}."
    require(declared <= found * (1.0 + 1e-6) + 1e-9, over, u=point)
    return f"{found:.6g} attained of {declared:.6g}"


def _linear_minimum(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """linear_minimum(g) gives the least <g, u> on X and a point of X that attains it."""
    g = rng.standard_normal((_COUNT, generator.dimension))
    value, point = (np.asarray(part) for part in generator.linear_minimum(g))
    size = _size(generator)
    outside = ~np.asarray(generator.contains(point, 1e-9 * size))
    require(not outside.any(), "the minimiser lies outside X.", u=point[int(np.argmax(outside))])
    above = (value - np.vecdot(g, point)) / size
    # A bound that is drawn from a projection is a little below the minimum, which costs digits and no truth.
    excess = np.maximum(above, -1e-3 * above)
    bounded(excess, 1e-9, "the value is not <g, u> at the minimiser.", g=g, u=point)
    others = generator.sample(rng, _COUNT)
    values = g @ others.T
    seen, least = "{value:.6g} is said, but <g, u> = {least:.6g} at a point of X.", values.min(1)
    bounded((value - least) / size, 1e-9, seen, g=g, u=others[values.argmin(1)], value=value, least=least)
    return f"{_COUNT} directions"


def _steps(generator: DistanceGenerator, rng: np.random.Generator, count: int) -> dict[str, Any]:
    """Draw proximal steps: anchors, linear terms, steps and penalties over several orders of magnitude."""
    size = 10.0 ** rng.uniform(-1.5, 1.5, (count, 1))
    return {
        "anchor": interior(generator, rng, count),
        "gradient": size * rng.standard_normal((count, generator.dimension)),
        "step": 10.0 ** rng.uniform(-2.0, 1.0, (count, 1)),
        "center": interior(generator, rng, count),
        "weight": 10.0 ** rng.uniform(-1.0, 1.0, (count, 1)) * (rng.random((count, 1)) < 0.5),
    }


def _prox(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """prox() minimises <g,u> + V(u,u')/step + weight V(u,center) over X (three-point inequality)."""
    drawn = _steps(generator, rng, _COUNT)
    anchor, g, step, middle, weight = drawn.values()
    plain = np.asarray(generator.prox(anchor, g, step))
    _require_optimal(generator, rng, plain, {**drawn, "weight": 0.0 * weight})
    penalised = np.asarray(generator.prox(anchor, g, step, center=middle, weight=weight))
    _require_optimal(generator, rng, penalised, drawn)
    return f"{2 * _COUNT} steps, each against a random point of X"


def _require_optimal(generator: DistanceGenerator, rng: np.random.Generator, found: Any, drawn: dict[str, Any]) -> None:
    anchor, g, step, middle, weight = drawn.values()
    outside = ~np.asarray(generator.contains(found, 1e-8 * _size(generator)))
    require(not outside.any(), "the result lies outside X.", u=found[int(np.argmax(outside))])

    def objective(u: Any) -> Any:
        penalty = weight[:, 0] * _bregman(generator, u, middle)
        return np.vecdot(g, u) + _bregman(generator, u, anchor) / step[:, 0] + penalty

    rate = 1.0 / step[:, 0] + weight[:, 0]
    for share in (1.0, 0.1):
        other = found + share * (interior(generator, rng, _COUNT) - found)
        excess = objective(found) + rate * np.maximum(_bregman(generator, other, found), 0.0) - objective(other)
        scale = np.abs(objective(found)) + rate * _size(generator) + np.linalg.norm(g, axis=1) * _size(generator)
        example = {"anchor": anchor, "g": g, "step": step[:, 0], "weight": weight[:, 0], "prox": found, "better": other}
        seen = "another point of X is better than the inequality allows, by {gap:.3g}."
        bounded(excess / scale, 1e-9, seen, gap=excess, **example)


def _inequalities(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """inequalities(u) are convex functions, at most 0 on X, with their gradients."""
    u, v = generator.sample(rng, _COUNT), generator.sample(rng, _COUNT)
    (here, slopes), (there, _) = generator.inequalities(u), generator.inequalities(v)
    count = int(np.shape(here)[-1])
    if not count:
        return "it has none"
    here, there = np.asarray(here), np.asarray(there)
    seen = "a point of X violates one."
    bounded(here.max(1), 1e-8 * _size(generator), seen, u=u, values=here)
    tangent = here + np.vecdot(np.asarray(slopes), (v - u)[:, None, :])
    seen = "the tangent at u lies above the function at v."
    bounded((tangent - there).max(1) / _size(generator), 1e-8, seen, u=u, v=v)
    return f"{count} functions"


def _reference_forms(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    """The cvxpy form describes the same set and generator: value, linear minimum and prox agree."""
    with exact_solutions() as (reference, cp):
        for u in interior(generator, rng, 5):
            variable = cp.Variable(generator.dimension)
            variable.value = u
            said, true = generator.cvxpy_value(cp, variable).value, float(generator.value(u))
            if said is not None:
                seen = f"cvxpy_value is {float(said):.6g}, value {true:.6g}."
                require(abs(float(said) - true) <= 1e-7 * _size(generator), seen, u=u)
            for inequality in generator.cvxpy_constraints(cp, variable):
                out = "cvxpy_constraints exclude a point of X."
                require(np.max(inequality.violation()) <= 1e-7 * _size(generator), out, u=u)
        for _ in range(3):
            g = rng.standard_normal(generator.dimension)
            found, least = float(generator.linear_minimum(g)[0]), reference.reference_linear_minimum(generator, g)[1]
            seen = f"linear_minimum is {found:.7g}, cvxpy finds {least:.7g}."
            require(abs(found - least) <= 1e-6 * _size(generator), seen, g=g)
            anchor, step = interior(generator, rng, 1)[0], float(10.0 ** rng.uniform(-1.0, 0.5))
            mine = np.asarray(generator.prox(anchor, g, step))
            _, best = reference.reference_prox(generator, anchor, g, step)
            reached = reference.prox_objective(generator, mine, anchor, g, step)
            seen = f"prox reaches {reached:.7g}, cvxpy {best:.7g}."
            allowed = 1e-7 * (_size(generator) / step + abs(best))
            require(reached <= best + allowed, seen, anchor=anchor, g=g, step=step)
    return "5 points, 3 directions, 3 steps"


def _calls(generator: DistanceGenerator, rng: np.random.Generator) -> dict[str, Call]:
    drawn = _steps(generator, rng, _RUNS)
    anchor, g, other = drawn["anchor"], drawn["gradient"], drawn["center"]

    def call(name: str, **arrays: Any) -> Call:
        return Call(lambda **given: {name: getattr(generator, name)(**given)}, arrays)

    def linear_minimum(g: Any) -> dict[str, Any]:
        value, point = generator.linear_minimum(g)
        return {"the value": value, "the minimiser": point}

    return {
        "prox": Call(lambda **given: {"prox": generator.prox(**given)}, drawn, distinct={"prox": tuple(drawn)}),
        "value": call("value", u=anchor),
        "gradient": call("gradient", u=anchor),
        "divergence": call("divergence", u=anchor, v=other),
        "linear_minimum": Call(linear_minimum, {"g": g}),
        "norm": call("norm", u=g),
        "dual_norm": call("dual_norm", g=g),
        "contains": call("contains", u=other),
    }


GENERATOR = (
    Check("contains", _GEOMETRY, _contains),
    Check("center", _GEOMETRY, _center),
    Check("gradient", _GEOMETRY, _gradient),
    Check("divergence", _GEOMETRY, _divergence),
    Check("strong_convexity", _GEOMETRY, _strong_convexity),
    Check("norms", _GEOMETRY, _norms),
    Check("diameter", _DIAMETER, _diameter),
    Check("linear_minimum", _GEOMETRY, _linear_minimum),
    Check("prox", _STEP, _prox),
    Check("inequalities", _GEOMETRY, _inequalities),
    Check("reference_forms", _STEP, _reference_forms),
    *purity_checks(_calls),
)

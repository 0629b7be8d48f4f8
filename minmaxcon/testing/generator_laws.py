"""What a distance generator on a set must satisfy: the set, its generator, and the prox."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.geometry import DistanceGenerator
from minmaxcon.testing.harness import Fault, Suite, at, cvxpy_module, reference, require, shown
from minmaxcon.testing.search import largest_value

__all__ = ["GENERATOR", "interior", "steps_from"]

GENERATOR = Suite()

_GEOMETRY = "howto/conformance.html#geometry"
_DIAMETER = "theory/generator.html#divergence-diameter"
_PROX = "howto/new_generator.html#what-must-hold"

_COUNT = 200


def interior(generator: DistanceGenerator, rng: np.random.Generator, count: int) -> Any:
    """Draw points that keep a little away from the boundary, where an entropy's gradient is finite."""
    return 0.95 * generator.sample(rng, count) + 0.05 * np.asarray(generator.center)


def steps_from(generator: DistanceGenerator, rng: np.random.Generator, count: int) -> dict[str, Any]:
    """Draw proximal steps: anchors, linear terms, steps and penalties over several orders of magnitude."""
    size = 10.0 ** rng.uniform(-1.5, 1.5, (count, 1))
    return {
        "anchor": interior(generator, rng, count),
        "gradient": size * rng.standard_normal((count, generator.dimension)),
        "step": 10.0 ** rng.uniform(-2.0, 1.0, (count, 1)),
        "center": interior(generator, rng, count),
        "weight": 10.0 ** rng.uniform(-1.0, 1.0, (count, 1)) * (rng.random((count, 1)) < 0.5),
    }


def _size(generator: DistanceGenerator) -> float:
    return 1.0 + float(generator.squared_diameter) + float(np.abs(generator.center).max())


@GENERATOR.check(
    "center and sample(rng, count) lie in X, and contains() tells points of X from points outside.", _GEOMETRY
)
def contains(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    points = np.asarray(generator.sample(rng, _COUNT))
    require(points.shape == (_COUNT, generator.dimension), f"sample has shape {points.shape}.")
    require(generator.contains(np.asarray(generator.center)), "the centre is outside.", shown(center=generator.center))
    inside = np.asarray(generator.contains(points))
    require(inside.shape == (_COUNT,), f"contains() of {_COUNT} points has shape {inside.shape}.")
    require(inside.all(), "a drawn point is outside.", shown(u=points[int(np.argmin(inside))]))
    edge = np.asarray(generator.linear_minimum(rng.standard_normal(points.shape))[1])
    offset = edge - generator.center
    beyond = generator.center + 1.5 * offset
    wide = np.abs(offset).max(1) > 1e-3
    wrong = np.asarray(generator.contains(beyond)) & wide
    seen = "contains() accepts a point half as far again from the centre as the edge of X."
    require(not wrong.any(), seen, shown(u=beyond[int(np.argmax(wrong))]))
    return f"{_COUNT} points inside, {int(wide.sum())} outside"


@GENERATOR.check("center minimises the generator on X.", _GEOMETRY)
def center(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    points = np.concatenate([generator.sample(rng, _COUNT), interior(generator, rng, _COUNT)])
    lowest = float(generator.value(np.asarray(generator.center)))
    excess = lowest - np.asarray(generator.value(points))
    worst = at(excess, 1e-9 * _size(generator))
    if worst is not None:
        raise Fault(f"omega is smaller by {excess[worst]:.3g} elsewhere.", shown(u=points[worst]))
    return f"{2 * _COUNT} points"


@GENERATOR.check("gradient() is the derivative of value(): central differences agree.", _GEOMETRY)
def gradient(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    first, second = interior(generator, rng, _COUNT), interior(generator, rng, _COUNT)
    middle, along = 0.5 * (first + second), second - first
    h = 1e-5
    forward, backward = (np.asarray(generator.value(middle + s * h * along)) for s in (1.0, -1.0))
    found, claimed = (forward - backward) / (2 * h), np.vecdot(np.asarray(generator.gradient(middle)), along)
    excess = np.abs(found - claimed) / (_size(generator) + np.abs(claimed))
    worst = at(excess, 1e-6)
    if worst is not None:
        seen = f"<gradient, d> = {claimed[worst]:.6g}, differences give {found[worst]:.6g}."
        raise Fault(seen, shown(u=middle[worst], d=along[worst]))
    return f"{_COUNT} points and directions"


@GENERATOR.check("divergence(u, v) = value(u) - value(v) - <gradient(v), u - v>.", _GEOMETRY)
def divergence(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    u, v = generator.sample(rng, _COUNT), interior(generator, rng, _COUNT)
    said = np.asarray(generator.divergence(u, v))
    true = np.asarray(generator.value(u) - generator.value(v) - np.vecdot(generator.gradient(v), u - v))
    worst = at(np.abs(said - true) / (_size(generator) + np.abs(true)), 1e-9)
    if worst is not None:
        raise Fault(f"{said[worst]:.6g} instead of {true[worst]:.6g}.", shown(u=u[worst], v=v[worst]))
    return f"{_COUNT} pairs"


@GENERATOR.check("V(u, v) >= 1/2 norm(u - v)^2: omega is 1-strongly convex in the norm that it declares.", _GEOMETRY)
def strong_convexity(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    count = 20 * _COUNT
    v, far = interior(generator, rng, count), generator.sample(rng, count)
    u = v + 10.0 ** rng.uniform(-3.0, 0.0, (count, 1)) * (far - v)
    linear = np.vecdot(np.asarray(generator.gradient(v)), u - v)
    bregman = np.asarray(generator.value(u) - generator.value(v)) - linear
    half = 0.5 * np.asarray(generator.norm(u - v)) ** 2
    worst = at((half * (1.0 - 1e-6) - bregman) / _size(generator), 1e-12)
    if worst is not None:
        seen = f"V(u, v) = {bregman[worst]:.6g} < {half[worst]:.6g} = 1/2 norm(u - v)^2."
        raise Fault(seen, shown(u=u[worst], v=v[worst]))
    return f"{count} pairs, far and near"


@GENERATOR.check("norm() is a norm, and <g, u> <= dual_norm(g) norm(u).", _GEOMETRY)
def norms(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    u, w, g = (rng.standard_normal((_COUNT, generator.dimension)) for _ in range(3))
    length, dual = np.asarray(generator.norm(u)), np.asarray(generator.dual_norm(g))
    aligned = np.concatenate([g, np.sign(g), np.eye(generator.dimension)[np.abs(g).argmax(1)] * np.sign(g)])
    many, sizes = np.tile(g, (3, 1)), np.tile(dual, 3)
    laws = {
        "norm(2 u) is not 2 norm(u).": np.abs(np.asarray(generator.norm(2.0 * u)) - 2.0 * length) / length,
        "norm(u + w) > norm(u) + norm(w).": (generator.norm(u + w) - length - generator.norm(w)) / length,
        "<g, u> > dual_norm(g) norm(u).": (np.vecdot(many, aligned) / np.asarray(generator.norm(aligned)) - sizes)
        / sizes,
    }
    for seen, excess in laws.items():
        worst = at(excess, 1e-9)
        if worst is not None:
            raise Fault(seen, shown(u=u[worst % _COUNT], w=w[worst % _COUNT], g=g[worst % _COUNT]))
    return f"{_COUNT} vectors"


@GENERATOR.check("squared_diameter = max omega - min omega on X: neither less nor more.", _DIAMETER)
def diameter(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    def corner(direction: Any) -> Any:
        return np.asarray(generator.linear_minimum(-direction)[1])

    starts = generator.sample(rng, 60)
    point, top = largest_value(generator.value, generator.gradient, corner, starts)
    found = top - float(generator.value(np.asarray(generator.center)))
    declared = float(generator.squared_diameter)
    under = f"declared {declared:.6g}, but omega - min omega is {found:.6g} at a point of X."
    require(declared >= found - 1e-9 * _size(generator), under, shown(u=point))
    over = f"declared {declared:.6g}, but no point was found above {found:.6g}."
    require(declared <= found * (1.0 + 1e-6) + 1e-9, over, shown(u=point))
    return f"{found:.6g} attained of {declared:.6g}"


@GENERATOR.check("linear_minimum(g) gives the least <g, u> on X and a point of X that attains it.", _GEOMETRY)
def linear_minimum(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    g = rng.standard_normal((_COUNT, generator.dimension))
    value, point = (np.asarray(part) for part in generator.linear_minimum(g))
    size = _size(generator)
    outside = ~np.asarray(generator.contains(point, 1e-9 * size))
    require(not outside.any(), "the minimiser lies outside X.", shown(u=point[int(np.argmax(outside))]))
    worst = at(np.abs(np.vecdot(g, point) - value) / size, 1e-9)
    if worst is not None:
        raise Fault("the value is not <g, u> at the minimiser.", shown(g=g[worst], u=point[worst]))
    others = generator.sample(rng, _COUNT)
    excess = (value[:, None] - g @ others.T) / size
    worst = at(excess, 1e-9)
    if worst is not None:
        i, j = divmod(worst, _COUNT)
        seen = f"{value[i]:.6g} is said, but <g, u> = {g[i] @ others[j]:.6g} at a point of X."
        raise Fault(seen, shown(g=g[i], u=others[j]))
    return f"{_COUNT} directions"


@GENERATOR.check("prox() minimises <g,u> + V(u,u')/step + weight V(u,center) over X (three-point inequality).", _PROX)
def prox(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    drawn = steps_from(generator, rng, _COUNT)
    anchor, g, step, middle, weight = drawn.values()
    plain = np.asarray(generator.prox(anchor, g, step))
    _optimal(generator, rng, plain, anchor, g, step, middle, 0.0 * weight)
    penalised = np.asarray(generator.prox(anchor, g, step, center=middle, weight=weight))
    _optimal(generator, rng, penalised, anchor, g, step, middle, weight)
    return f"{2 * _COUNT} steps, each against a random point of X"


def _optimal(generator: Any, rng: Any, found: Any, anchor: Any, g: Any, step: Any, middle: Any, weight: Any) -> None:
    outside = ~np.asarray(generator.contains(found, 1e-8 * _size(generator)))
    require(not outside.any(), "the result lies outside X.", shown(u=found[int(np.argmax(outside))]))

    def bregman(u: Any, v: Any) -> Any:
        return np.asarray(generator.value(u) - generator.value(v)) - np.vecdot(generator.gradient(v), u - v)

    def objective(u: Any) -> Any:
        return np.vecdot(g, u) + bregman(u, anchor) / step[:, 0] + weight[:, 0] * bregman(u, middle)

    rate = 1.0 / step[:, 0] + weight[:, 0]
    for share in (1.0, 0.1):
        other = found + share * (interior(generator, rng, _COUNT) - found)
        excess = objective(found) + rate * np.maximum(bregman(other, found), 0.0) - objective(other)
        scale = np.abs(objective(found)) + rate * _size(generator) + np.linalg.norm(g, axis=1) * _size(generator)
        worst = at(excess / scale, 1e-9)
        if worst is not None:
            seen = f"another point of X is better than the inequality allows, by {excess[worst]:.3g}."
            example = shown(anchor=anchor[worst], g=g[worst], step=step[worst, 0], weight=weight[worst, 0])
            raise Fault(seen, f"{example}, {shown(prox=found[worst], better=other[worst])}")


@GENERATOR.check("inequalities(u) are convex functions, at most 0 on X, with their gradients.", _GEOMETRY)
def inequalities(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    u, v = generator.sample(rng, _COUNT), generator.sample(rng, _COUNT)
    (here, slopes), (there, _) = generator.inequalities(u), generator.inequalities(v)
    worst = at(np.asarray(here), 1e-8 * _size(generator))
    count = int(np.shape(here)[-1])
    if worst is not None:
        raise Fault("a point of X violates one.", shown(u=u[worst // count], values=here[worst // count]))
    tangent = np.asarray(here) + np.vecdot(np.asarray(slopes), (v - u)[:, None, :])
    worst = at((tangent - np.asarray(there)) / _size(generator), 1e-8)
    if worst is not None:
        example = shown(u=u[worst // count], v=v[worst // count])
        raise Fault("the tangent at u lies above the function at v.", example)
    return f"{count} functions" if count else "it has none"


@GENERATOR.check("The cvxpy form describes the same set and generator: value, linear minimum and prox agree.", _PROX)
def reference_forms(generator: DistanceGenerator, rng: np.random.Generator) -> str:
    exact, cp = reference(), cvxpy_module()
    points = interior(generator, rng, 5)
    for u in points:
        variable = cp.Variable(generator.dimension)
        variable.value = u
        said, true = generator.cvxpy_value(cp, variable).value, float(generator.value(u))
        if said is not None:
            seen = f"cvxpy_value is {float(said):.6g}, value {true:.6g}."
            require(abs(float(said) - true) <= 1e-7 * _size(generator), seen, shown(u=u))
        for inequality in generator.cvxpy_constraints(cp, variable):
            out = "cvxpy_constraints exclude a point of X."
            require(np.max(inequality.violation()) <= 1e-7 * _size(generator), out, shown(u=u))
    for _ in range(3):
        g = rng.standard_normal(generator.dimension)
        found, least = float(generator.linear_minimum(g)[0]), exact.reference_linear_minimum(generator, g)[1]
        seen = f"linear_minimum is {found:.7g}, cvxpy finds {least:.7g}."
        require(abs(found - least) <= 1e-6 * _size(generator), seen, shown(g=g))
        anchor, step = interior(generator, rng, 1)[0], float(10.0 ** rng.uniform(-1.0, 0.5))
        mine = np.asarray(generator.prox(anchor, g, step))
        _, best = exact.reference_prox(generator, anchor, g, step)
        reached = exact.prox_objective(generator, mine, anchor, g, step)
        seen = f"prox reaches {reached:.7g}, cvxpy {best:.7g}."
        allowed = 1e-7 * (_size(generator) / step + abs(best))
        require(reached <= best + allowed, seen, shown(anchor=anchor, g=g, step=step))
    return "5 points, 3 directions, 3 steps"

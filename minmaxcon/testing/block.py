r"""Checks of inner blocks and of the perspective generator over the levels of a problem.

.. math:: \omega_y(y, \alpha) = K\,KL(y) + \sum_i y_i\,\omega_{A_i}(\alpha_i)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minmaxcon.geometry import DualPoint, InnerBlock, PerspectiveGenerator, entropy_weight_bound
from minmaxcon.testing.check import Check, Skip, bounded, exact_solutions, require
from minmaxcon.testing.purity import Call, purity_checks

__all__ = ["BLOCK", "DUAL", "largest_value"]

_CLASS = "theory/problem_class.html"
_GENERATOR = "theory/generator.html"
_HOW_LARGE = "theory/generator.html#how-large-must-k-be"
_DIAMETER = "theory/generator.html#divergence-diameter"
_PROX = "theory/generator.html#the-prox-is-a-formula"

_COUNT = 200
_RUNS = 6


def largest_value(
    value: Callable[[Any], Any], gradient: Callable[[Any], Any], corner: Callable[[Any], Any], starts: Any
) -> tuple[Any, float]:
    """Maximise a convex function over a set: from many starts, jump to the extreme point along the gradient.

    ``corner`` gives the points of the set that maximise linear functions (n, d). Returns the best point found and the
    value there, a lower bound of the maximum that is attained.
    """
    d = starts.shape[1]
    wide = np.asarray(corner(np.concatenate([np.eye(d), -np.eye(d)])))
    points = np.concatenate([starts, np.asarray(corner(starts - starts.mean(0))), wide])
    for _ in range(200):  # a few are enough for corners; a smooth set takes more
        moved = np.asarray(corner(np.asarray(gradient(points))))
        now = np.asarray(value(points))
        better = np.asarray(value(moved)) > now + 1e-12 * np.abs(now)
        points = np.where(better[:, None], moved, points)
        if not better.any():
            break
    best = points[int(np.argmax(value(points)))]
    # A corner that is best along the gradient need not be the best: try the neighbours along each axis.
    for _ in range(min(d, 40)):
        slope = np.asarray(gradient(best[None, :]))
        push = 1e3 * (1.0 + np.abs(slope).max()) * np.concatenate([np.eye(d), -np.eye(d)])
        others = np.asarray(corner(slope + push))
        values = np.asarray(value(others))
        if values.max() <= float(value(best[None, :])[0]) * (1.0 + 1e-12):
            break
        best = others[int(np.argmax(values))]
    return best, float(value(best[None, :])[0])


def _interior(block: InnerBlock, rng: np.random.Generator, count: int) -> Any:
    """Draw points of A that keep a little away from its boundary."""
    return 0.95 * np.asarray(block.sample(rng, count)) + 0.05 * np.asarray(block.start)


def _size(block: InnerBlock) -> float:
    return 1.0 + float(block.maximum) + float(block.radius)


def _slope(block: InnerBlock, v: Any, along: Any, h: float = 1e-6) -> Any:
    """Return the derivative of the block's generator at v along a direction, by central differences."""
    ahead, behind = np.asarray(block.value(v + h * along)), np.asarray(block.value(v - h * along))
    return (ahead - behind) / (2.0 * h)


def _start(block: InnerBlock, rng: np.random.Generator) -> str:
    """The generator is at least 0 on A, and 0 at start."""
    begin = np.asarray(block.start)
    require(begin.shape == (block.dimension,), f"start has shape {begin.shape}, not ({block.dimension},).")
    here = float(block.value(begin))
    require(abs(here) <= 1e-9 * _size(block), f"it is {here:.3g} at start.", start=begin)
    points = np.asarray(block.sample(rng, _COUNT))
    values = np.asarray(block.value(points))
    bounded(-values, 1e-9 * _size(block), "it is {value:.3g} at a point of A.", alpha=points, value=values)
    return f"{_COUNT} points"


def _divergence(block: InnerBlock, rng: np.random.Generator) -> str:
    """divergence(alpha, anchor) is the Bregman divergence of value()."""
    u, v = (_interior(block, rng, _COUNT) for _ in range(2))
    v = 0.5 * (u + v)  # so that differences around v stay in A
    said = np.asarray(block.divergence(u, v))
    true = np.asarray(block.value(u) - block.value(v)) - _slope(block, v, u - v)
    excess = np.abs(said - true) / _size(block)
    bounded(excess, 1e-6, "{said:.6g} instead of {true:.6g}.", alpha=u, anchor=v, said=said, true=true)
    return f"{_COUNT} pairs"


def _strong_convexity(block: InnerBlock, rng: np.random.Generator) -> str:
    """divergence(alpha, anchor) >= modulus/2 |alpha - anchor|_2^2."""
    count = 10 * _COUNT
    v, far = _interior(block, rng, count), np.asarray(block.sample(rng, count))
    u = v + 10.0 ** rng.uniform(-3.0, 0.0, (count, 1)) * (far - v)
    found = np.asarray(block.divergence(u, v))
    half = 0.5 * float(block.modulus) * np.vecdot(u - v, u - v)
    excess = (half * (1.0 - 1e-6) - found) / _size(block)
    seen = f"{{found:.6g}} < {{half:.6g}} with modulus {block.modulus:g}."
    bounded(excess, 1e-12, seen, alpha=u, anchor=v, found=found, half=half)
    return f"{count} pairs, modulus {block.modulus:g}"


def _rim(block: InnerBlock, direction: Any) -> Any:
    """Return the points of A furthest in some directions: so long a linear term that the penalty no longer counts."""
    length = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
    return np.asarray(block.maximize(1e9 * direction / length)[0])


def _diameter(block: InnerBlock, rng: np.random.Generator) -> str:
    """The maximum is that of the generator on A: neither less nor more."""

    def gradient(points: Any) -> Any:
        return np.stack([_slope(block, points, axis) for axis in np.eye(block.dimension)], axis=-1)

    starts = np.asarray(block.sample(rng, 60))
    point, found = largest_value(block.value, gradient, lambda direction: _rim(block, direction), starts)
    declared = float(block.maximum)
    under = f"declared {declared:.6g}, but the generator is {found:.6g} at a point of A."
    require(declared >= found - 1e-7 * _size(block), under, alpha=point)
    over = f"declared {declared:.6g}, but no point was found above {found:.6g}."
    require(declared <= found * (1.0 + 1e-6) + 1e-7, over, alpha=point)
    return f"{found:.6g} attained of {declared:.6g}"


def _radius(block: InnerBlock, rng: np.random.Generator) -> str:
    """The radius is max |alpha|_2 on A and the reach the largest |alpha_j|: the constant K rests on them."""

    def length(points: Any) -> Any:
        return np.linalg.norm(points, axis=-1)

    starts = np.asarray(block.sample(rng, 60))
    point, found = largest_value(length, lambda points: points + 1e-9, lambda along: _rim(block, along), starts)
    axes = np.concatenate([np.eye(block.dimension), -np.eye(block.dimension)])
    reached = float(np.abs(_rim(block, axes)).max())
    for name, declared, true in (("radius", block.radius, found), ("reach", block.reach, reached)):
        seen = f"{name} is declared {declared:.6g}, {true:.6g} was found."
        require(abs(float(declared) - true) <= 1e-3 * true + 1e-9, seen, alpha=point)
    return f"radius {found:.6g}, reach {reached:.6g}"


def _penalty_convex(block: InnerBlock, rng: np.random.Generator) -> str:
    """The penalty g is convex on A, so that the maximum over alpha is a concave problem."""
    count = 5 * _COUNT
    u, v = (np.asarray(block.sample(rng, count)) for _ in range(2))
    share = rng.uniform(0.1, 0.9, count)
    middle = np.asarray(block.penalty(share[:, None] * u + (1.0 - share[:, None]) * v))
    chord = share * np.asarray(block.penalty(u)) + (1.0 - share) * np.asarray(block.penalty(v))
    seen = "g is {middle:.6g} between two points where the chord is {chord:.6g}."
    excess = (middle - chord) / (1.0 + np.abs(chord))
    bounded(excess, 1e-10, seen, alpha=u, other=v, share=share, middle=middle, chord=chord)
    return f"{count} chords"


def _terms(block: InnerBlock, rng: np.random.Generator, count: int) -> Any:
    return 10.0 ** rng.uniform(-1.0, 1.5, (count, 1)) * rng.standard_normal((count, block.dimension))


def _require_in_block(block: InnerBlock, rng: np.random.Generator, alpha: Any) -> None:
    """Raise a fault if a linear function is larger at alpha than anywhere on A."""
    others = np.asarray(block.sample(rng, 300))
    offset = alpha - others[np.argmin(((alpha[:, None, :] - others) ** 2).sum(-1), axis=1)]
    for probe in (rng.standard_normal(alpha.shape), alpha, offset, *np.eye(block.dimension)):
        length = np.linalg.norm(np.broadcast_to(probe, alpha.shape), axis=1, keepdims=True)
        unit = np.where(length > 1e-9, probe / np.maximum(length, 1e-9), 1.0)
        for direction in (unit, -unit):
            excess = np.vecdot(direction, alpha - _rim(block, direction))
            seen = "the result lies outside A, by {gap:.3g} along a direction."
            bounded(excess / _size(block), 1e-7, seen, alpha=alpha, direction=direction, gap=excess)


def _maximize(block: InnerBlock, rng: np.random.Generator) -> str:
    """maximize(v) gives the largest <v, alpha> - g(alpha) on A and a point of A that attains it."""
    v = _terms(block, rng, _COUNT)
    alpha, value = (np.asarray(part) for part in block.maximize(v))
    scale = _size(block) * (1.0 + np.linalg.norm(v, axis=1))
    reached = np.vecdot(v, alpha) - np.asarray(block.penalty(alpha))
    seen = "said {value:.6g}, but <v, alpha> - g(alpha) = {reached:.6g} at the maximiser."
    bounded(np.abs(reached - value) / scale, 1e-9, seen, v=v, alpha=alpha, value=value, reached=reached)
    others = np.asarray(block.sample(rng, _COUNT))
    values = v @ others.T - np.asarray(block.penalty(others))
    better = others[values.argmax(1)]
    bounded((values.max(1) - value) / scale, 1e-9, "another point of A is better.", v=v, found=alpha, better=better)
    _require_in_block(block, rng, alpha[:40])
    return f"{_COUNT} linear terms"


def _prox(block: InnerBlock, rng: np.random.Generator) -> str:
    """prox(v, anchor, 1/tau) minimises -<v,alpha> + g(alpha) + B(alpha,anchor)/tau over A; its value is nu."""
    v, anchor = _terms(block, rng, _COUNT), _interior(block, rng, _COUNT)
    rate = 10.0 ** rng.uniform(-1.0, 2.0, _COUNT)
    alpha, value = (np.asarray(part) for part in block.prox(v, anchor, rate[:, None]))
    _require_in_block(block, rng, alpha[:40])

    def objective(u: Any) -> Any:
        return np.asarray(block.penalty(u)) - np.vecdot(v, u) + rate * np.asarray(block.divergence(u, anchor))

    reached, scale = objective(alpha), _size(block) * (1.0 + np.linalg.norm(v, axis=1) + rate)
    given = {"v": v, "anchor": anchor, "inverse_step": rate}
    seen = "nu is said to be {value:.6g}; the objective is {reached:.6g}."
    bounded(np.abs(reached - value) / scale, 1e-9, seen, **given, alpha=alpha, value=value, reached=reached)
    for share in (1.0, 0.1):
        other = alpha + share * (_interior(block, rng, _COUNT) - alpha)
        excess = reached + rate * np.asarray(block.divergence(other, alpha)) - objective(other)
        seen = "another point of A is better than the inequality allows, by {gap:.3g}."
        bounded(excess / scale, 1e-9, seen, **given, prox=alpha, better=other, gap=excess)
    return f"{_COUNT} steps, each against two points of A"


def _reference_forms(block: InnerBlock, rng: np.random.Generator) -> str:
    """The cvxpy form describes the same set, penalty and divergence: maximum and prox agree."""
    alone = PerspectiveGenerator([block])
    with exact_solutions() as (reference, _):
        for _ in range(3):
            v = _terms(block, rng, 1)[0]
            said, (_, best) = float(block.maximize(v)[1]), reference.reference_support(alone, np.zeros(1), v)
            allowed = 1e-6 * _size(block) * (1.0 + float(np.linalg.norm(v)))
            require(abs(said - best) <= allowed, f"maximize gives {said:.7g}, cvxpy {best:.7g}.", v=v)
            anchor = alone.point(np.ones(1), _interior(block, rng, 1)[0])
            step = float(10.0 ** rng.uniform(-1.0, 1.0))
            mine = alone.prox(anchor, np.zeros(1), v, step)
            _, least = reference.reference_dual_prox(alone, anchor, np.zeros(1), v, step)
            reached = reference.dual_prox_objective(alone, mine, anchor, np.zeros(1), v, step)
            seen = f"prox gives {reached:.7g}, cvxpy {least:.7g}."
            require(reached <= least + allowed / min(step, 1.0), seen, v=v, anchor=anchor.inner, step=step)
    return "3 linear terms, 3 steps"


def _calls(block: InnerBlock, rng: np.random.Generator) -> dict[str, Call]:
    v, rate = 3.0 * rng.standard_normal((_RUNS, block.dimension)), 10.0 ** rng.uniform(-1.0, 1.0, (_RUNS, 1))
    alpha, anchor = (_interior(block, rng, _RUNS) for _ in range(2))

    def prox(**given: Any) -> dict[str, Any]:
        return dict(zip(("prox", "nu"), block.prox(**given), strict=True))

    step = {"v": v, "anchor": anchor, "inverse_step": rate}
    return {
        "prox": Call(prox, step, distinct={"prox": tuple(step), "nu": tuple(step)}),
        "maximize": Call(lambda v: dict(zip(("the maximiser", "the value"), block.maximize(v), strict=True)), {"v": v}),
        "value": Call(lambda alpha: {"value": block.value(alpha)}, {"alpha": alpha}),
        "penalty": Call(lambda alpha: {"penalty": block.penalty(alpha)}, {"alpha": alpha}),
        "divergence": Call(
            lambda **given: {"divergence": block.divergence(**given)}, {"alpha": alpha, "anchor": anchor}
        ),
    }


BLOCK = (
    Check("start", _GENERATOR, _start),
    Check("divergence", _GENERATOR, _divergence),
    Check("strong_convexity", _HOW_LARGE, _strong_convexity),
    Check("diameter", _DIAMETER, _diameter),
    Check("radius", _HOW_LARGE, _radius),
    Check("penalty_convex", _CLASS, _penalty_convex),
    Check("maximize", _CLASS, _maximize),
    Check("prox", _PROX, _prox),
    Check("reference_forms", _PROX, _reference_forms),
    *purity_checks(_calls),
)


def _dual_start(generator: PerspectiveGenerator) -> Any:
    parts = [np.asarray(block.start) for block in generator.blocks if block is not None]
    return np.concatenate(parts) if parts else np.zeros(0)


def _dual_interior(
    generator: PerspectiveGenerator, rng: np.random.Generator, count: int, margin: float = 0.05
) -> DualPoint:
    point = generator.sample(rng, count)
    weights = (1.0 - margin) * point.weights + margin / generator.levels
    return generator.point(weights, (1.0 - margin) * point.inner + margin * _dual_start(generator))


def _dual_size(generator: PerspectiveGenerator) -> float:
    return 1.0 + float(generator.squared_diameter)


def _dual_strong_convexity(generator: PerspectiveGenerator, rng: np.random.Generator) -> str:
    """V_y >= 1/2 (|y - y'|_1^2 + |a - a'|_2^2) when K is at least the theorem's."""
    least = entropy_weight_bound(generator.blocks)
    if generator.entropy_weight < least:
        raise Skip(f"K = {generator.entropy_weight:g} is below the theorem's {least:.4g}: no modulus is claimed")
    count = 20 * _COUNT
    second, far = _dual_interior(generator, rng, count, 1e-4), generator.sample(rng, count)
    near = 10.0 ** rng.uniform(-3.0, 0.0, (count, 1))
    weights = second.weights + near * (far.weights - second.weights)
    inner = second.inner + near * (far.inner - second.inner)
    # Random, near, and in the direction in which the theorem is tight.
    pairs = [(generator.point(weights, inner), second), _tight_pairs(generator, rng, count)]
    for first, other in pairs:
        found = np.asarray(generator.divergence(first, other))
        half = 0.5 * np.asarray(generator.squared_distance(first, other))
        seen = f"V = {{found:.6g}} < {{half:.6g}} with K = {generator.entropy_weight:g}."
        both = {"y": first.weights, "alpha": first.inner, "from_y": other.weights, "from_alpha": other.inner}
        bounded((half * (1.0 - 1e-6) - found) / _dual_size(generator), 1e-12, seen, found=found, half=half, **both)
    return f"{2 * count} pairs, K = {generator.entropy_weight:g}"


def _tight_pairs(generator: PerspectiveGenerator, rng: np.random.Generator, count: int) -> tuple[DualPoint, DualPoint]:
    """Move weight between two levels whose inner variables lie near the rim, and each alpha along itself."""
    levels = generator.levels
    order = np.argsort(rng.random((count, levels)), axis=1)
    giver, taker = np.eye(levels)[order[:, 0]], np.eye(levels)[order[:, -1]]
    weights = np.maximum(0.5 * (giver + taker), 1e-9)
    weights /= weights.sum(1, keepdims=True)
    change = 10.0 ** rng.uniform(-3.0, -0.6, (count, 1)) * 0.5 * (taker - giver)
    moved = np.maximum(weights + change, 1e-12)
    moved /= moved.sum(1, keepdims=True)
    parts = [(i, block) for i, block in enumerate(generator.blocks) if block is not None]
    inner, after = np.zeros((2, count, generator.inner_dimension))
    begin = 0
    for i, block in parts:
        cut = slice(begin, begin + block.dimension)
        begin = cut.stop
        rim = _rim(block, rng.standard_normal((count, block.dimension)))
        base = block.start + (1.0 - 10.0 ** rng.uniform(-3.0, -0.3, (count, 1))) * (rim - block.start)
        # In the direction d(alpha) = 2 alpha dy/y the theorem is tight; a step so short that g does not count keeps A.
        along = base * rng.uniform(1.0, 3.0, (count, 1)) * (change / weights)[:, [i]]
        inner[:, cut] = base
        after[:, cut] = np.asarray(block.prox(1e12 * along, base, 1e12)[0])
    return generator.point(moved, after), generator.point(weights, inner)


def _dual_diameter(generator: PerspectiveGenerator, rng: np.random.Generator) -> str:
    """squared_diameter = max omega_y - min omega_y: neither less nor more."""
    # omega_y is convex, so its maximum lies at a corner of y, with the alpha of that level at an extreme point.
    tops = [0.0]
    for block in generator.blocks:
        if block is not None:
            g = np.concatenate([rng.standard_normal((400, block.dimension)), np.eye(block.dimension)])
            tops.append(float(np.max(block.value(_rim(block, np.concatenate([g, -g]))))))
    found = generator.entropy_weight * float(np.log(generator.levels)) + max(tops)
    corners = generator.point(np.eye(generator.levels), np.tile(_dual_start(generator), (generator.levels, 1)))
    lowest = float(generator.value(generator.center(np.zeros(1))))
    require(abs(lowest) <= 1e-9 * _dual_size(generator), f"omega_y is {lowest:.3g} at the centre, not 0.")
    found = max(found, float(np.max(generator.value(corners))))
    declared = float(generator.squared_diameter)
    require(declared >= found - 1e-9 * _dual_size(generator), f"declared {declared:.6g}, but {found:.6g} is attained.")
    over = f"declared {declared:.6g}, but nothing above {found:.6g} was found."
    require(declared <= found * (1.0 + 1e-3) + 1e-9, over)
    return f"{found:.6g} attained of {declared:.6g}"


def _dual_prox(generator: PerspectiveGenerator, rng: np.random.Generator) -> str:
    """prox() minimises -<u,y> - <v,a> + V_y/tau + d_y over the dual set (three-point inequality)."""
    anchor, size = _dual_interior(generator, rng, _COUNT), 10.0 ** rng.uniform(-1.0, 1.5, (_COUNT, 1))
    u = size * rng.standard_normal((_COUNT, generator.levels))
    v = size * rng.standard_normal((_COUNT, generator.inner_dimension))
    step = 10.0 ** rng.uniform(-2.0, 1.0, _COUNT)
    found = generator.prox(anchor, u, v, step[:, None])
    off = np.abs(found.weights.sum(1) - 1.0) + np.maximum(-found.weights.min(1), 0.0)
    bounded(off, 1e-9, "the weights are no point of the simplex.", y=found.weights, alpha=found.inner)

    def objective(point: DualPoint) -> Any:
        linear = np.vecdot(u, point.weights) + np.vecdot(v, np.asarray(generator.scaled(point)))
        return np.asarray(generator.divergence(point, anchor)) / step + np.asarray(generator.penalty(point)) - linear

    other = _dual_interior(generator, rng, _COUNT)
    excess = objective(found) + np.asarray(generator.divergence(other, found)) / step - objective(other)
    scale = (_dual_size(generator) + size[:, 0]) * (1.0 + 1.0 / step) + np.abs(objective(other))
    seen, better = "another point is better than the inequality allows, by {gap:.3g}.", other
    example = {"u": u, "v": v, "step": step, "better_y": better.weights, "better_alpha": better.inner}
    bounded(excess / scale, 1e-9, seen, gap=excess, **example)
    return f"{_COUNT} steps"


def _dual_support(generator: PerspectiveGenerator, rng: np.random.Generator) -> str:
    """The largest entry of support(u, v) = max of <u,y> + <v,a> - d_y over the dual set, by cvxpy too."""
    u = rng.standard_normal((_COUNT, generator.levels))
    v = 3.0 * rng.standard_normal((_COUNT, generator.inner_dimension))
    top = np.asarray(generator.support(u, v)).max(1)
    point = generator.sample(rng, _COUNT)
    linear = np.vecdot(u, point.weights) + np.vecdot(v, np.asarray(generator.scaled(point)))
    excess = (linear - np.asarray(generator.penalty(point)) - top) / _dual_size(generator)
    bounded(excess, 1e-9, "a dual point has a larger value.", u=u, v=v, y=point.weights, alpha=point.inner)
    with exact_solutions() as (reference, _):
        for j in range(2):
            best = reference.reference_support(generator, u[j], v[j])[1]
            seen = f"support gives {top[j]:.7g}, cvxpy {best:.7g}."
            require(abs(best - top[j]) <= 1e-6 * _dual_size(generator), seen, u=u[j], v=v[j])
    return f"{_COUNT} points; 2 by cvxpy"


def _dual_calls(generator: PerspectiveGenerator, rng: np.random.Generator) -> dict[str, Call]:
    point = generator.sample(rng, _RUNS)
    u = rng.standard_normal((_RUNS, generator.levels))
    v = rng.standard_normal((_RUNS, generator.inner_dimension))
    step = 10.0 ** rng.uniform(-1.0, 1.0, (_RUNS, 1))

    def prox(weights: Any, inner: Any, u: Any, v: Any, step: Any) -> dict[str, Any]:
        found: DualPoint = generator.prox(generator.point(weights, inner), u, v, step)
        return {"log y": found.log_weights, "y": found.weights, "alpha": found.inner}

    drawn = {"weights": point.weights, "inner": point.inner, "u": u, "v": v, "step": step}
    support = Call(lambda u, v: {"support": generator.support(u, v)}, {"u": u, "v": v})
    return {"prox": Call(prox, drawn), "support": support}


DUAL = (
    Check("strong_convexity", _HOW_LARGE, _dual_strong_convexity),
    Check("diameter", _DIAMETER, _dual_diameter),
    Check("prox", _PROX, _dual_prox),
    Check("support", _PROX, _dual_support),
    *purity_checks(_dual_calls),
)

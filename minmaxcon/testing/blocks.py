"""What an inner block and the perspective generator over several of them must satisfy."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.geometry import InnerBlock, PerspectiveGenerator
from minmaxcon.testing.harness import Fault, Suite, at, reference, require, shown
from minmaxcon.testing.search import largest_value

__all__ = ["BLOCK", "interior_of", "slope_of"]

BLOCK = Suite()

_CLASS = "theory/problem_class.html"
_GENERATOR = "theory/generator.html"
_HOW_LARGE = "theory/generator.html#how-large-must-k-be"
_DIAMETER = "theory/generator.html#divergence-diameter"
_PROX = "theory/generator.html#the-prox-is-a-formula"

_COUNT = 200


def interior_of(block: InnerBlock, rng: np.random.Generator, count: int) -> Any:
    """Draw points of A that keep a little away from its boundary."""
    return 0.95 * np.asarray(block.sample(rng, count)) + 0.05 * np.asarray(block.start)


def _size(block: InnerBlock) -> float:
    return 1.0 + float(block.maximum) + float(block.radius)


def slope_of(block: InnerBlock, v: Any, along: Any, h: float = 1e-6) -> Any:
    """Return the derivative of the block's generator at v along a direction, by central differences."""
    ahead, behind = np.asarray(block.value(v + h * along)), np.asarray(block.value(v - h * along))
    return (ahead - behind) / (2.0 * h)


@BLOCK.check("The generator is at least 0 on A, and 0 at start.", _GENERATOR)
def start(block: InnerBlock, rng: np.random.Generator) -> str:
    begin = np.asarray(block.start)
    require(begin.shape == (block.dimension,), f"start has shape {begin.shape}, not ({block.dimension},).")
    here = float(block.value(begin))
    require(abs(here) <= 1e-9 * _size(block), f"it is {here:.3g} at start.", shown(start=begin))
    points = np.asarray(block.sample(rng, _COUNT))
    values = np.asarray(block.value(points))
    worst = at(-values, 1e-9 * _size(block))
    if worst is not None:
        raise Fault(f"it is {values[worst]:.3g} at a point of A.", shown(alpha=points[worst]))
    return f"{_COUNT} points"


@BLOCK.check("divergence(alpha, anchor) is the Bregman divergence of value().", _GENERATOR)
def divergence(block: InnerBlock, rng: np.random.Generator) -> str:
    u, v = (interior_of(block, rng, _COUNT) for _ in range(2))
    v = 0.5 * (u + v)  # so that differences around v stay in A
    said = np.asarray(block.divergence(u, v))
    true = np.asarray(block.value(u) - block.value(v)) - slope_of(block, v, u - v)
    worst = at(np.abs(said - true) / _size(block), 1e-6)
    if worst is not None:
        raise Fault(f"{said[worst]:.6g} instead of {true[worst]:.6g}.", shown(alpha=u[worst], anchor=v[worst]))
    return f"{_COUNT} pairs"


@BLOCK.check("divergence(alpha, anchor) >= modulus/2 |alpha - anchor|_2^2.", _HOW_LARGE)
def strong_convexity(block: InnerBlock, rng: np.random.Generator) -> str:
    count = 10 * _COUNT
    v, far = interior_of(block, rng, count), np.asarray(block.sample(rng, count))
    u = v + 10.0 ** rng.uniform(-3.0, 0.0, (count, 1)) * (far - v)
    found = np.asarray(block.divergence(u, v))
    half = 0.5 * float(block.modulus) * np.vecdot(u - v, u - v)
    worst = at((half * (1.0 - 1e-6) - found) / _size(block), 1e-12)
    if worst is not None:
        seen = f"{found[worst]:.6g} < {half[worst]:.6g} with modulus {block.modulus:g}."
        raise Fault(seen, shown(alpha=u[worst], anchor=v[worst]))
    return f"{count} pairs, modulus {block.modulus:g}"


def _corner(block: InnerBlock) -> Any:
    def corner(direction: Any) -> Any:
        # So long a linear term that the penalty no longer counts.
        length = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        return np.asarray(block.maximize(1e9 * direction / length)[0])

    return corner


@BLOCK.check("maximum = max of the generator on A: neither less nor more.", _DIAMETER)
def diameter(block: InnerBlock, rng: np.random.Generator) -> str:
    def gradient(points: Any) -> Any:
        return np.stack([slope_of(block, points, axis) for axis in np.eye(block.dimension)], axis=-1)

    point, found = largest_value(block.value, gradient, _corner(block), np.asarray(block.sample(rng, 60)))
    declared = float(block.maximum)
    under = f"declared {declared:.6g}, but the generator is {found:.6g} at a point of A."
    require(declared >= found - 1e-7 * _size(block), under, shown(alpha=point))
    over = f"declared {declared:.6g}, but no point was found above {found:.6g}."
    require(declared <= found * (1.0 + 1e-6) + 1e-7, over, shown(alpha=point))
    return f"{found:.6g} attained of {declared:.6g}"


@BLOCK.check("radius = max |alpha|_2 on A and reach = the largest |alpha_j|: the constant K rests on them.", _HOW_LARGE)
def radius(block: InnerBlock, rng: np.random.Generator) -> str:
    def gradient(points: Any) -> Any:
        return points + 1e-9

    def length(points: Any) -> Any:
        return np.linalg.norm(points, axis=-1)

    corner = _corner(block)
    point, found = largest_value(length, gradient, corner, np.asarray(block.sample(rng, 60)))
    axes = np.concatenate([np.eye(block.dimension), -np.eye(block.dimension)])
    reached = float(np.abs(corner(axes)).max())
    for name, declared, true in (("radius", block.radius, found), ("reach", block.reach, reached)):
        seen = f"{name} is declared {declared:.6g}, {true:.6g} was found."
        require(abs(float(declared) - true) <= 1e-3 * true + 1e-9, seen, shown(alpha=point))
    return f"radius {found:.6g}, reach {reached:.6g}"


@BLOCK.check("g is convex on A, so that the maximum over alpha is a concave problem.", _CLASS)
def penalty_convex(block: InnerBlock, rng: np.random.Generator) -> str:
    count = 5 * _COUNT
    u, v = (np.asarray(block.sample(rng, count)) for _ in range(2))
    share = rng.uniform(0.1, 0.9, (count, 1))
    middle = np.asarray(block.penalty(share * u + (1.0 - share) * v))
    chord = share[:, 0] * np.asarray(block.penalty(u)) + (1.0 - share[:, 0]) * np.asarray(block.penalty(v))
    worst = at((middle - chord) / (1.0 + np.abs(chord)), 1e-10)
    if worst is not None:
        seen = f"g is {middle[worst]:.6g} between two points where the chord is {chord[worst]:.6g}."
        raise Fault(seen, shown(alpha=u[worst], other=v[worst], share=share[worst, 0]))
    return f"{count} chords"


def _terms(block: InnerBlock, rng: np.random.Generator, count: int) -> Any:
    return 10.0 ** rng.uniform(-1.0, 1.5, (count, 1)) * rng.standard_normal((count, block.dimension))


def _in_set(block: InnerBlock, rng: np.random.Generator, alpha: Any) -> None:
    """Raise a fault if a linear function is larger at alpha than anywhere on A."""
    others = np.asarray(block.sample(rng, 300))
    offset = alpha - others[np.argmin(((alpha[:, None, :] - others) ** 2).sum(-1), axis=1)]
    probes = [rng.standard_normal(alpha.shape), np.asarray(alpha), offset, *np.eye(block.dimension)]
    for probe in probes:
        length = np.linalg.norm(np.broadcast_to(probe, alpha.shape), axis=1, keepdims=True)
        unit = np.where(length > 1e-9, probe / np.maximum(length, 1e-9), 1.0)
        for sign in (1.0, -1.0):
            g = 1e9 * sign * unit  # so long that the penalty no longer counts
            edge = np.asarray(block.maximize(g)[0])
            excess = sign * np.vecdot(unit, alpha - edge)
            worst = at(excess / _size(block), 1e-7)
            if worst is not None:
                seen = f"the result lies outside A, by {excess[worst]:.3g} along a direction."
                raise Fault(seen, shown(alpha=alpha[worst], direction=g[worst] / np.abs(g[worst]).max()))


@BLOCK.check("maximize(v) gives the largest <v, alpha> - g(alpha) on A and a point of A that attains it.", _CLASS)
def maximize(block: InnerBlock, rng: np.random.Generator) -> str:
    v = _terms(block, rng, _COUNT)
    alpha, value = (np.asarray(part) for part in block.maximize(v))
    scale = _size(block) * (1.0 + np.linalg.norm(v, axis=1))
    reached = np.vecdot(v, alpha) - np.asarray(block.penalty(alpha))
    worst = at(np.abs(reached - value) / scale, 1e-9)
    if worst is not None:
        seen = f"said {value[worst]:.6g}, but <v, alpha> - g(alpha) = {reached[worst]:.6g} at the maximiser."
        raise Fault(seen, shown(v=v[worst], alpha=alpha[worst]))
    others = np.asarray(block.sample(rng, _COUNT))
    excess = (v @ others.T - np.asarray(block.penalty(others)) - value[:, None]) / scale[:, None]
    worst = at(excess, 1e-9)
    if worst is not None:
        i, j = divmod(worst, _COUNT)
        raise Fault("another point of A is better.", shown(v=v[i], found=alpha[i], better=others[j]))
    _in_set(block, rng, alpha[:40])
    return f"{_COUNT} linear terms"


@BLOCK.check(
    "prox(v, anchor, 1/tau) minimises -<v,alpha> + g(alpha) + B(alpha,anchor)/tau over A; its value is nu.", _PROX
)
def prox(block: InnerBlock, rng: np.random.Generator) -> str:
    v, anchor = _terms(block, rng, _COUNT), interior_of(block, rng, _COUNT)
    rate = 10.0 ** rng.uniform(-1.0, 2.0, (_COUNT, 1))
    alpha, value = (np.asarray(part) for part in block.prox(v, anchor, rate))
    _in_set(block, rng, alpha[:40])

    def objective(u: Any) -> Any:
        return np.asarray(block.penalty(u)) - np.vecdot(v, u) + rate[:, 0] * np.asarray(block.divergence(u, anchor))

    scale = _size(block) * (1.0 + np.linalg.norm(v, axis=1) + rate[:, 0])
    worst = at(np.abs(objective(alpha) - value) / scale, 1e-9)
    if worst is not None:
        seen = f"nu is said to be {value[worst]:.6g}; the objective is {objective(alpha)[worst]:.6g}."
        raise Fault(seen, shown(v=v[worst], anchor=anchor[worst], inverse_step=rate[worst, 0], alpha=alpha[worst]))
    for share in (1.0, 0.1):
        other = alpha + share * (interior_of(block, rng, _COUNT) - alpha)
        excess = objective(alpha) + rate[:, 0] * np.asarray(block.divergence(other, alpha)) - objective(other)
        worst = at(excess / scale, 1e-9)
        if worst is not None:
            example = shown(v=v[worst], anchor=anchor[worst], inverse_step=rate[worst, 0])
            seen = f"another point of A is better than the inequality allows, by {excess[worst]:.3g}."
            raise Fault(seen, f"{example}, {shown(prox=alpha[worst], better=other[worst])}")
    return f"{_COUNT} steps, each against two points of A"


@BLOCK.check("The cvxpy form describes the same set, penalty and divergence: maximum and prox agree.", _PROX)
def reference_forms(block: InnerBlock, rng: np.random.Generator) -> str:
    exact = reference()
    alone = PerspectiveGenerator([block])
    for _ in range(3):
        v = _terms(block, rng, 1)[0]
        said, (_, best) = float(block.maximize(v)[1]), exact.reference_support(alone, np.zeros(1), v)
        allowed = 1e-6 * _size(block) * (1.0 + float(np.linalg.norm(v)))
        require(abs(said - best) <= allowed, f"maximize gives {said:.7g}, cvxpy {best:.7g}.", shown(v=v))
        anchor, step = alone.point(np.ones(1), interior_of(block, rng, 1)[0]), float(10.0 ** rng.uniform(-1.0, 1.0))
        mine = alone.prox(anchor, np.zeros(1), v, step)
        _, least = exact.reference_dual_prox(alone, anchor, np.zeros(1), v, step)
        reached = exact.dual_prox_objective(alone, mine, anchor, np.zeros(1), v, step)
        example = shown(v=v, anchor=anchor.inner, step=step)
        require(reached <= least + allowed / min(step, 1.0), f"prox gives {reached:.7g}, cvxpy {least:.7g}.", example)
    return "3 linear terms, 3 steps"

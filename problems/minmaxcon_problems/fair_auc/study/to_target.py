r"""Time and samples to a feasible point within a share of :math:`r_0 - f^*` of the optimum, for linear fair AUC.

Every contestant minimises the same objective subject to the same two constraints on the same rows, in one process and
on one thread; seconds are those of the processor, without the looks of this measurement. A point counts if it is
feasible on all rows, evaluated exactly in float64, and :math:`f_0(x) - f^* \le s\,(r_0 - f^*)`, where :math:`r_0` is
the objective of the constant model and :math:`f^*` a conic solver's.
"""

from __future__ import annotations

import copy
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

import minmaxcon as mm
from minmaxcon.cli import table
from minmaxcon.core import Points, Position
from minmaxcon.errors import InvalidInput
from minmaxcon.reference import conic_minimum, solve_exact
from minmaxcon.results import OKABE_ITO, describe_machine, empty_figure, one_thread, style_axes, versions
from minmaxcon.solvers import automatic, ends_together
from minmaxcon_problems.fair_auc.datasets import Dataset, load_dataset
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import resolve_metric
from minmaxcon_problems.fair_auc.surrogate.build import build_problem

from .bench_result import BenchResult
from .peers import Peer, installed_peers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["OURS", "Instance", "Reached", "TargetResult", "bench_target", "first_within", "synthetic_rows"]

OURS = "minmaxcon, default"
_ROWS, _MOMENTS = "Clarabel, rows", "Clarabel, moments by hand"
_CONIC_NUMBERS = 2**21
"""Rows x features above which the conic form by rows is not tried: it takes minutes and many GB."""

_PEER_NUMBERS = 2**23
"""The same for other packages: their steps do not depend on the rows, but looks at hundreds of settings do."""

_FEASIBLE = 1e-7
"""Violations up to this count as none: a conic solver ends that near, and so it holds for all."""

PRIMAL_RATES, DUAL_RATES, BATCHES = (0.01, 0.03, 0.1, 0.3), (0.01, 0.1, 1.0), (100, 1000)


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of a contestant's point after some seconds and samples."""

    seconds: float
    samples: int
    objective: float
    violation: float


@dataclass(frozen=True, eq=False, slots=True)
class Instance:
    """A problem to be solved: what rows call it, how it is built, and its first level and optimal value."""

    data: str
    metric: str
    rows: int
    features: int
    build: Callable[[str, str], mm.MinMaxProblem]
    first: float
    optimum: float

    def within(self, look: Look) -> float:
        """Return the relative gap of a feasible point, infinite for an infeasible one."""
        if not look.violation <= _FEASIBLE:
            return math.inf
        return (look.objective - self.optimum) / (self.first - self.optimum)


@dataclass(frozen=True, slots=True)
class Reached:
    """Median seconds and samples of a method to a target, over the repeats that reached it if most did, else None."""

    data: str
    metric: str
    rows: int
    features: int
    method: str
    target: float
    seconds: float | None
    samples: float | None
    reached: int
    repeats: int
    setting: str = ""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class TargetResult(BenchResult):
    """Rows of the table, notes on what was left out, and what repeats the measurement."""

    reached: list[Reached]

    def table(self) -> str:
        """Return the table that ``minmaxcon bench target`` prints."""
        shares = sorted({one.target for one in self.reached}, reverse=True)
        heads = [f"{what} to {100 * share:g}%" for share in shares for what in ("seconds", "samples")]
        lines: dict[tuple[str, ...], dict[float, Reached]] = {}
        for one in self.reached:
            key = (one.data, one.metric, f"{one.rows:,}", str(one.features), one.method, one.setting)
            lines.setdefault(key, {})[one.target] = one
        body = [
            [*key[:5], *(text for share in shares for text in _cells(found.get(share))), key[5]]
            for key, found in lines.items()
        ]
        head = ["data", "metric", "rows", "d", "method", *heads, "rates, batch"]
        text = "Median processor seconds and samples to a feasible point within a share of r_0 - f*; -: not reached\n"
        text += table([head, *body], left=5)
        return text + "".join(f"{note}\n" for note in self.notes)

    def figure(self) -> Figure:
        """Draw seconds against rows on logarithmic axes: a column a target, a row a number of features."""
        mine = [one for one in self.reached if one.data == "synthetic"]
        shares, widths = (sorted({getattr(one, name) for one in mine}) for name in ("target", "features"))
        methods = list(dict.fromkeys(one.method for one in mine))
        figure = empty_figure(4.6 * max(1, len(shares)) + 2.6, 3.3 * max(1, len(widths)) + 0.4)
        grid = figure.subplots(max(1, len(widths)), max(1, len(shares)), squeeze=False, sharey=True)
        handles: dict[str, Any] = {}
        for (row, width), (column, share) in itertools.product(enumerate(widths), enumerate(reversed(shares))):
            axes = grid[row, column]
            for place, method in enumerate(methods):
                found = [o for o in mine if (o.features, o.target, o.method) == (width, share, method)]
                points = sorted((o.rows, o.seconds) for o in found if o.seconds is not None)
                if points:
                    look = {"color": OKABE_ITO[place % len(OKABE_ITO)], "marker": "osD^vPX"[place % 7]}
                    (handles[method],) = axes.loglog(*zip(*points, strict=True), linewidth=1.6, **look)
            axes.set_title(f"{width} features, within {100 * share:g}%", fontsize="medium")
            style_axes(axes)
            axes.set_xlabel("rows" if row + 1 == len(widths) else "")
            axes.set_ylabel("" if column else "processor seconds")
        figure.legend(list(handles.values()), list(handles), loc="outside right center", frameon=False)
        return figure


def _cells(one: Reached | None) -> tuple[str, str]:
    if one is None or one.seconds is None:
        return "-", "-"
    few = "" if one.reached == one.repeats else f" ({one.reached} of {one.repeats})"
    return f"{one.seconds:,.3g}{few}", "-" if one.samples is None else f"{one.samples:,.0f}"


def first_within(instance: Instance, looks: Sequence[Look], share: float) -> Look | None:
    """Return the first look at a feasible point within a share of the span, or None."""
    return next((look for look in looks if instance.within(look) <= share), None)


def synthetic_rows(rows: int, features: int, seed: int) -> LabelledData:
    """Return normal features that carry label and group: of every 20 rows 6 are positive, 5 protected, 1 both."""
    rng, index = np.random.default_rng(seed), np.arange(rows) % 20
    label = np.where(index < 6, 1, -1).astype(np.int8)
    group = np.where((index == 0) | (index >= 16), 1, -1).astype(np.int8)
    directions = rng.standard_normal((3, features)) / np.sqrt(features)
    values = rng.standard_normal((rows, features))
    values += 1.2 * label[:, None] * directions[0] + 0.8 * group[:, None] * directions[1]
    values += 0.5 * (label * group)[:, None] * directions[2]
    return LabelledData(values, label, group, tuple(f"x{j}" for j in range(features)), name="synthetic")


def bench_target(
    *,
    data: Sequence[str] = ("a9a", "synthetic"),
    metrics: Sequence[str] = ("group", "inter_group", "intra_group"),
    rows: Sequence[int] = (10_000, 100_000, 1_000_000),
    features: Sequence[int] = (20, 120),
    kappa: float = 0.2,
    targets: Sequence[float] = (0.01, 0.001),
    repeats: int = 5,
    limit: float = 60.0,
    search: float = 2.0,
    peers: bool = True,
    conic: bool = True,
    seed: int = 0,
    data_dir: Any = None,
    progress: bool = False,
) -> TargetResult:
    """Measure time and samples to a target: the automatic solver, other packages, and a conic solver.

    Named ``data`` are taken with each of the ``metrics``; ``"synthetic"`` with each number of ``rows`` and
    ``features``, and inter-group. The automatic solver is asked for half the smallest target and has no other setting.
    Every method of an installed package tries all step sizes and batch sizes for ``search`` seconds each, which is not
    counted; the setting that came first to the smallest target that any reached, else nearest, is then run ``repeats``
    times. A run ends after ``limit`` seconds, and a method that has missed every target in half of its repeats is not
    run again, since its median would not exist. Of such methods both the last iterate and the mean of the last half of
    the iterates seen are looked at. Raises InvalidInput for a number out of range, UnknownName for unknown names.
    """
    for name, value in {"limit": limit, "search": search}.items():
        if not (np.isfinite(value) and value > 0):
            raise InvalidInput(name, value, "must be positive and finite.")
    for name, numbers, least in (("rows", rows, 100), ("features", features, 1), ("repeats", (repeats,), 1)):
        if not numbers or min(numbers) < least:
            raise InvalidInput(name, numbers, f"must be whole numbers of at least {least}.")
    if not targets or not all(0 < share < 1 for share in targets):
        raise InvalidInput("targets", targets, "must be shares between 0 and 1, such as 0.01.")
    notes: list[str] = []
    found: list[Reached] = []
    with one_thread():
        makers = list(_makers(data, metrics, rows, features, kappa, seed, data_dir))
        for make in tqdm(makers, desc="problems", leave=False, disable=None if progress else True):
            instance = make()
            runs = dict(_contestants(instance, targets, repeats, limit, search, peers, conic, seed, notes))
            found += [
                _median(instance, method, setting, looks, share)
                for method, (setting, looks) in runs.items()
                for share in targets
            ]
    settings = {"kappa": kappa, "repeats": repeats, "limit": limit, "search": search, "seed": seed}
    return TargetResult(
        reached=found,
        notes=list(dict.fromkeys(notes)),
        settings={**settings, "targets": list(targets)},
        machine=describe_machine(),
        versions=versions(),
    )


def _makers(
    data: Sequence[str],
    metrics: Sequence[str],
    rows: Sequence[int],
    features: Sequence[int],
    kappa: float,
    seed: int,
    data_dir: Any,
) -> Iterator[Callable[[], Instance]]:
    """Yield functions that make the instances, so that one is in memory at a time; names are checked at once."""
    for name in data:
        if name == "synthetic":
            for width, count in itertools.product(features, rows):
                yield partial(_synthetic, count, width, kappa, seed)
            continue
        parts = load_dataset(name, data_dir=data_dir, seed=seed)
        for metric in metrics:
            resolve_metric(metric)
            yield partial(_instance, name, parts, metric, kappa)


def _synthetic(rows: int, features: int, kappa: float, seed: int) -> Instance:
    drawn = synthetic_rows(rows, features, seed)
    return _instance("synthetic", Dataset("synthetic", drawn, None, drawn.select(np.arange(20))), "inter_group", kappa)


def _instance(name: str, parts: Dataset, metric: str, kappa: float) -> Instance:
    def build(engine: str, dtype: str) -> mm.MinMaxProblem:
        return build_problem(parts, resolve_metric(metric), kappa, engine=engine, dtype=dtype)

    problem = build("numpy", "float64")
    first = float(Points.measured(problem, problem.start_point()).objective[0])
    optimum = float(solve_exact(problem).objective)
    return Instance(name, metric, len(parts.train), parts.train.features.shape[1], build, first, optimum)


Run = tuple[str, list[list[Look]]]
"""The setting of a method in words, and the looks of each repeat."""


def _contestants(
    instance: Instance,
    targets: Sequence[float],
    repeats: int,
    limit: float,
    search: float,
    peers: bool,
    conic: bool,
    seed: int,
    notes: list[str],
) -> Iterator[tuple[str, Run]]:
    problem = instance.build("numpy", "float64")
    least, numbers = min(targets), instance.rows * instance.features

    def repeated(run: Callable[[int], list[Look]]) -> list[list[Look]]:
        looks: list[list[Look]] = []
        while len(looks) < repeats:
            looks.append(run(seed + len(looks)))
            if 2 * sum(first_within(instance, one, max(targets)) is None for one in looks) >= repeats:
                break  # no median
        return looks

    def ours(own: int) -> list[Look]:  # a fresh problem each time: what one has summed of the rows serves no other
        return _ours(instance, instance.build("numpy", "float64"), least, limit, own)

    yield OURS, ("", repeated(ours))
    if conic:
        yield _MOMENTS, ("", [[_by_moments(instance)] for _ in range(repeats)])
        if numbers <= _CONIC_NUMBERS:
            yield _ROWS, ("", [[_by_rows(problem)]])
        else:
            notes.append(f"{_ROWS}: not tried above {_CONIC_NUMBERS:,} numbers (rows x features).")
    if not peers:
        return
    if numbers > _PEER_NUMBERS:
        notes.append(f"Other packages: not tried above {_PEER_NUMBERS:,} numbers (rows x features).")
        return
    torch_problem = instance.build("torch", "float32")
    known, missing = installed_peers(torch_problem)
    notes += missing
    grid = list(itertools.product(PRIMAL_RATES, DUAL_RATES, BATCHES))
    for place, peer in enumerate(known):
        if peer.package == "torch":  # its multipliers are fixed: it solves another problem
            continue

        def run(setting: tuple[float, float, int], seconds: float, own: int, place: int = place) -> list[Look]:
            fresh = installed_peers(torch_problem, setting[:2])[0][place]
            return _descended(instance, problem, torch_problem, fresh, setting[2], least, seconds, own)

        best = min(grid, key=lambda setting: _rank(instance, run(setting, search, seed), targets))
        text = f"{best[0]:g}, {best[1]:g}, {best[2]}"
        name = f"{peer.package.removesuffix('-optim').removesuffix('-train')}, {peer.method}"
        yield name, (text, repeated(partial(run, best, limit)))


def _rank(instance: Instance, looks: Sequence[Look], targets: Sequence[float]) -> tuple[float, ...]:
    """Return what settings are compared by: how soon each target was reached, the smallest first; then how near."""
    hits = [first_within(instance, looks, share) for share in sorted(targets)]
    nearest = min((instance.within(look) for look in looks), default=math.inf)
    return (*(math.inf if hit is None else hit.seconds for hit in hits), nearest)


def _ours(instance: Instance, problem: mm.MinMaxProblem, least: float, limit: float, seed: int) -> list[Look]:
    """Solve by the automatic solver, and look at its best point after every level."""
    looks: list[Look] = []
    away, began = 0.0, time.process_time()

    def look(progress: mm.Progress) -> bool:
        nonlocal away
        now = time.process_time()
        outcome = progress.outcome
        seen = Look(now - began - away, outcome.samples, float(outcome.objective[0]), _worst(outcome.constraints))
        if not looks or seen.objective != looks[-1].objective or seen.violation != looks[-1].violation:
            looks.append(seen)
        done = instance.within(seen) <= least or seen.seconds > limit
        away += time.process_time() - now
        return done

    solver: Any = copy.copy(automatic(problem))
    solver.tolerance = 0.5 * least
    with ends_together(all_or_nothing=True):
        mm.solve(problem, solver, seed=seed, callbacks=[look])
    return looks


def _worst(constraints: Any) -> float:
    return float(np.max(constraints))


def _look(problem: mm.MinMaxProblem, weights: Any, seconds: float, samples: int) -> Look:
    """Evaluate weights (d,) of the model on all rows, its offsets at their best."""
    x = problem.start_point()
    x[:, : len(weights)] = weights
    found = Points.measured(problem, problem.family.refine(x, problem.data))
    return Look(seconds, samples, float(found.objective[0]), float(found.violation[0]))


def _by_moments(instance: Instance) -> Look:
    """Solve the d x d program that a person derives for a linear model, its moments and cvxpy's work included."""
    fresh = instance.build("numpy", "float64")
    began = time.process_time()
    found = solve_exact(fresh)
    return Look(time.process_time() - began, instance.rows, float(found.objective), _worst(found.constraints))


def _by_rows(problem: Any) -> Look:
    """Solve the problem as it is stated, a norm of the scores of the rows of each subset."""
    began = time.process_time()
    features = problem.data.arrays["features"]
    rows = features.toarray() if hasattr(features, "tocsr") else features
    weights = np.asarray(problem.data.arrays["weights"]) / len(rows)
    c1, c2, size = problem.details.c1, problem.details.c2, rows.shape[1]
    masks = {k: np.flatnonzero(weights[:, k]) for k in range(weights.shape[1])}

    def forms(cp: Any, w: Any) -> tuple[Any, list[Any]]:
        def pair(j: int) -> Any:
            total: Any = c1 * c2**2
            means = []
            for slot in (2 * j, 2 * j + 1):
                mine = rows[masks[slot]]
                means.append(mine.mean(axis=0))
                total = total + (c1 / len(mine)) * cp.sum_squares((mine - means[-1]) @ w)
            difference = (means[0] - means[1]) @ w
            return total + c1 * cp.square(difference) - 2.0 * c1 * c2 * difference

        sides = [sum(pair(j) for j in function.pairs) for function in problem.constraints]
        bounds = [float(function.bound) for function in problem.constraints]
        below = [side <= bound for side, bound in zip(sides, bounds, strict=True)]
        return pair(0), [*below, cp.norm(w) <= problem.objective.layout.radius]

    w = conic_minimum(size, forms)
    seconds = time.process_time() - began
    return _look(problem, w, seconds, len(rows))


def _descended(
    instance: Instance,
    exact: mm.MinMaxProblem,
    problem: mm.MinMaxProblem,
    peer: Peer,
    batch_size: int,
    least: float,
    limit: float,
    seed: int,
) -> list[Look]:
    """Run a method of another package, and look at it at steps that grow by a quarter."""
    position, looks = Position.start(np.random.default_rng(seed)), list[Look]()
    seen: list[Any] = []
    seconds, steps, due = 0.0, 0, 0
    while seconds < limit:
        began = time.process_time()
        batches, position = problem.data.draw(position, _BLOCK, batch_size)
        for batch in batches:
            peer.step(batch)
        steps += _BLOCK
        seconds += time.process_time() - began
        last = peer.weights()
        if not np.isfinite(last).all():
            break
        seen.append(last)
        if steps < due:
            continue
        due = max(steps + _BLOCK, int(1.25 * steps))
        for weights in (last, np.mean(seen[len(seen) // 2 :], axis=0)):
            looks.append(_look(exact, weights, seconds, steps * batch_size))
            if instance.within(looks[-1]) <= least:
                return looks
    return looks


_BLOCK = 50


def _median(instance: Instance, method: str, setting: str, looks: Sequence[Sequence[Look]], share: float) -> Reached:
    hits = [first_within(instance, one, share) for one in looks]
    known = [hit for hit in hits if hit is not None]
    most = 2 * len(known) > len(looks)
    return Reached(
        instance.data,
        instance.metric,
        instance.rows,
        instance.features,
        method,
        share,
        statistics.median(hit.seconds for hit in known) if most else None,
        statistics.median(hit.samples for hit in known) if most and not method.startswith("Clarabel") else None,
        len(known),
        len(looks),
        setting,
    )

"""Growth of time and memory with rows, features, constraints, groups and runs, one at a time."""

from __future__ import annotations

import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

import minmaxcon as mm
from minmaxcon.cli import table
from minmaxcon.data import population_weights
from minmaxcon.models import GroupRisk, Linear, LogisticLoss, Risk
from minmaxcon.results import OKABE_ITO, describe_machine, empty_figure, load_average, one_thread, style_axes, versions
from minmaxcon.solvers import ends_together
from minmaxcon_problems.fair_auc.datasets import dataset_from
from minmaxcon_problems.fair_auc.metrics import resolve_metric
from minmaxcon_problems.fair_auc.surrogate.build import build_problem

from .bench_result import BenchResult
from .to_target import synthetic_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AXES", "Growth", "Point", "ScaleResult", "bench_scale"]

AXES: Mapping[str, tuple[int, ...]] = {
    "rows": (1_000, 10_000, 100_000),
    "features": (10, 40, 160, 640),
    "constraints": (1, 4, 16, 64),
    "groups": (2, 8, 32, 128),
    "runs": (1, 16, 256),
}
"""The quantities that grow, each with its default sizes."""

_ROWS, _FEATURES, _BATCH, _BLOCK = 5_000, 20, 100, 50
_MEASURED = ("step", "solve", "peak")
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured at one size.

    Attributes
    ----------
    axis, size : str, int
        What grows, and how large it is.
    step : float
        Processor microseconds of a step of mirror descent, batch 100; the median of some blocks.
    setup, solve : float
        Processor seconds to build the problem, and of a solve by the automatic solver.
    solver, status : str
        That solver, and how it ended (of several runs the most frequent).
    peak : float
        Most MiB that arrays and objects took at once, the data included, while the problem was built, a block of steps
        was made and a point was evaluated exactly.
    """

    axis: str
    size: int
    step: float
    setup: float
    solve: float
    solver: str
    status: str
    peak: float


@dataclass(frozen=True, slots=True)
class Growth:
    """Exponents p of growth like size to the power p, between the largest two sizes.

    That of the solve is None where one of the two did not end as solved.
    """

    axis: str
    step: float
    solve: float | None
    peak: float


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ScaleResult(BenchResult):
    """The points and exponents of a measurement, its settings, and the machine."""

    points: list[Point]
    growth: list[Growth]

    def table(self) -> str:
        """Return the tables that ``minmaxcon bench scale`` prints."""
        machine, packages = self.machine, self.versions
        text = f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, "
        text += f"load average {machine['load_average']}\n"
        names = ("minmaxcon", "python", "numpy", "scipy")
        text += ", ".join(f"{name} {packages[name]}" for name in names) + ", one thread\n\n"
        head = ("grows", "size", "us a step", "s to build", "s a solve", "peak MiB", "solver", "status")
        rows = [
            (
                one.axis,
                f"{one.size:,}",
                f"{one.step:,.0f}",
                f"{one.setup:.3f}",
                f"{'' if one.status == 'SOLVED' else '> '}{one.solve:.2f}",
                f"{one.peak:.1f}",
                one.solver,
                one.status,
            )
            for one in self.points
        ]
        text += table([head, *rows])
        several: list[tuple[str, ...]] = [("grows", "step", "solve", "peak")]
        several += [(one.axis, *(_power(getattr(one, name)) for name in _MEASURED)) for one in self.growth]
        text += "\nExponents between the largest two sizes (1: in proportion, 0: not at all):\n" + table(several)
        return text + "".join(f"{note}\n" for note in self.notes)

    def figure(self) -> Figure:
        """Draw what was measured against each size, on logarithmic axes; a solve that did not end is an open mark."""
        from matplotlib.ticker import NullFormatter

        axes_ = list(dict.fromkeys(one.axis for one in self.points))
        titles = {"step": "us a step", "solve": "s a solve", "peak": "peak MiB"}
        figure = empty_figure(2.2 * max(2, len(axes_)) + 0.6, 6.4)
        grid = figure.subplots(len(titles), max(1, len(axes_)), squeeze=False, sharey="row", sharex="col")
        for (row, (name, title)), (column, axis) in (
            (first, second) for first in enumerate(titles.items()) for second in enumerate(axes_)
        ):
            mine = sorted((one.size, getattr(one, name), one.status) for one in self.points if one.axis == axis)
            place, color, mark = grid[row, column], OKABE_ITO[row], "osD"[row]
            place.loglog([one[0] for one in mine], [one[1] for one in mine], color=color, marker=mark, linewidth=1.6)
            ended = [one[:2] for one in mine if name == "solve" and one[2] != "SOLVED"]
            place.loglog([one[0] for one in ended], [one[1] for one in ended], mark, mec=color, mfc="white")
            place.yaxis.set_minor_formatter(NullFormatter())
            style_axes(place)
            place.set_ylabel("" if column else title)
            place.set_xlabel(axis if row + 1 == len(titles) else "")
        for row, name in enumerate(titles):  # whole decades, so that every axis has numbers
            least = min((getattr(one, name) for one in self.points), default=1.0)
            grid[row, 0].set_ylim(bottom=0.8 * 10 ** np.floor(np.log10(least)))
        return figure


def bench_scale(
    *,
    sizes: Mapping[str, Sequence[int]] | None = None,
    limit: float = 5.0,
    seed: int = 0,
    progress: bool = False,
) -> ScaleResult:
    """Measure how a step, a solve and memory grow, one size at a time, on one thread.

    Rows, features and runs are those of linear fair AUC on synthetic rows, constraints mean losses of parts of the
    rows, each a function of its own, and groups those of one worst-group risk. What does not grow is 5,000 rows, 20
    features, one run.

    Parameters
    ----------
    sizes : mapping of str to sequence of int, optional
        Sizes to measure by what grows; by default :data:`AXES`.
    limit : float
        Seconds of wall-clock time after which a solve ends.
    seed : int
        Seed of the data and of the solves.
    progress : bool
        Whether a bar is shown on a terminal's standard error.

    Raises
    ------
    InvalidInput
        If a number is out of range, or nothing grows by this name.
    """
    sizes = AXES if sizes is None else sizes
    for axis, values in sizes.items():
        if axis not in AXES:
            raise mm.UnknownName("sizes", axis, AXES)
        if not values or min(values) < (40 if axis == "rows" else 1):
            raise mm.InvalidInput(axis, list(values), "must be whole numbers of at least 1, and 40 of rows.")
    if not (np.isfinite(limit) and limit > 0):
        raise mm.InvalidInput("limit", limit, "must be positive and finite.")
    before = load_average()
    points = []
    with one_thread():
        wanted = [(axis, size) for axis, values in sizes.items() for size in dict.fromkeys(values)]
        _measured("rows", 200, 0.05, seed)  # what is loaded when it is first used is not counted
        for axis, size in tqdm(wanted, desc="sizes", leave=False, disable=None if progress else True):
            points.append(_measured(axis, size, limit, seed))
        environment = versions()
    coretype = os.environ.get("OPENBLAS_CORETYPE")
    notes = [] if coretype is None else [f"OPENBLAS_CORETYPE={coretype} was set: kernels may not be this machine's."]
    return ScaleResult(
        points=points,
        growth=[one for axis in sizes for one in _growth([point for point in points if point.axis == axis])],
        notes=notes,
        settings={
            "sizes": {axis: list(values) for axis, values in sizes.items()},
            "limit": limit,
            "seed": seed,
            "batch_size": _BATCH,
            "OPENBLAS_CORETYPE": coretype,
        },
        machine={**describe_machine(), "load_average": before},
        versions=environment,
    )


def _measured(axis: str, size: int, limit: float, seed: int) -> Point:
    make = _maker(axis, size, seed)
    began = time.process_time()
    problem = make()
    setup = time.process_time() - began
    step = _step(problem, seed)
    began = time.process_time()
    solver = mm.solvers.automatic(problem)
    with ends_together(all_or_nothing=True):
        found = mm.solve(problem, solver, seed=seed, time_limit=limit)
    solve = time.process_time() - began
    statuses = [found.status] if found.runs is None else list(found.status)
    del problem
    tracemalloc.start()
    try:
        problem = make()
        _step(problem, seed, rounds=1)
        problem.at_level(0.0).values(problem.start_point(problem.runs or 1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    status = max(set(statuses), key=statuses.count).name
    return Point(axis, size, step, setup, solve, solver.title, status, peak / 2**20)


def _step(problem: mm.MinMaxProblem, seed: int, rounds: int = _ROUNDS) -> float:
    """Return the median microseconds of a step over some blocks, the first one left out."""
    runs = problem.runs or 1
    block = max(2, min(_BLOCK, 6400 // runs))
    oracle = mm.SMD(steps=10**12, batch_size=_BATCH, block=block)
    start = mm.Start(problem.start_point(runs), None, mm.Position.start(np.random.default_rng(seed)))
    state = oracle.advance(oracle.begin(problem.at_level(np.full(runs, 0.5)), start))
    times = []
    for _ in range(rounds):
        began = time.process_time()
        state = oracle.advance(state)
        times.append(1e6 * (time.process_time() - began) / block)
    return statistics.median(times)


def _maker(axis: str, size: int, seed: int) -> Callable[[], mm.MinMaxProblem]:
    """Return what makes the problem in which something has this size."""
    if axis in ("constraints", "groups"):
        return lambda: _risks(size, seed, worst=axis == "groups")

    def fair() -> mm.MinMaxProblem:
        # 70% of the rows train: so many that the wanted number does.
        rows = synthetic_rows(
            int(np.ceil((size if axis == "rows" else _ROWS) / 0.7)), size if axis == "features" else _FEATURES, seed
        )
        parts = dataset_from(rows, test_fraction=0.3, standardize=True, seed=seed)
        kappa = np.linspace(0.05, 0.4, size) if axis == "runs" and size > 1 else 0.2
        return build_problem(parts, resolve_metric("inter_group"), kappa)

    return fair


class PartRisk(Risk):
    """The mean loss of one part of the rows: column ``part`` of ``group_weights``."""

    def __init__(self, part: int, features: int, bound: float) -> None:
        super().__init__(Linear(features), LogisticLoss(), bound=bound, name=f"risk of part {part}")
        self.part = part

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.evaluate`."""
        scores, pull = self.model.evaluate(x, batch["features"])
        value, slope = self.loss.evaluate(scores, batch["target"])
        weights = batch["group_weights"][:, self.part] * (1.0 / int(scores.shape[-1]))
        return mm.Evaluation(value @ weights, x[..., :0], lambda y, _: pull(slope * weights * y[..., None]))


def _risks(size: int, seed: int, *, worst: bool) -> mm.MinMaxProblem:
    """Return the least mean loss, with the loss of every part, or of the worst of all, a little below that of zero."""
    rng, part = np.random.default_rng(seed), np.arange(_ROWS) % size
    features = rng.standard_normal((_ROWS, _FEATURES))
    target = np.where(features @ rng.standard_normal(_FEATURES) + 2.0 * rng.standard_normal(_ROWS) > 0, 1.0, -1.0)
    weights = population_weights(part[:, None] == np.arange(size))
    data = mm.Finite({"features": features, "target": target, "group_weights": weights})
    model, bound = Linear(_FEATURES), np.log(2.0) + 0.05
    limits: list[Any] = (
        [GroupRisk(model, LogisticLoss(), size, bound=bound)]
        if worst
        else [PartRisk(each, _FEATURES, bound) for each in range(size)]
    )
    return mm.MinMaxProblem(Risk(model, LogisticLoss()), limits, mm.Ball(_FEATURES, 5.0), data)


def _growth(points: Sequence[Point]) -> list[Growth]:
    if len(points) < 2:
        return []
    one, other = sorted(points, key=lambda point: point.size)[-2:]
    apart = np.log(other.size / one.size)
    step, solve, peak = (float(np.log(getattr(other, name) / getattr(one, name)) / apart) for name in _MEASURED)
    return [Growth(one.axis, step, solve if one.status == other.status == "SOLVED" else None, peak)]


def _power(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

"""Targets in the metric's own unit, the true AUC gap at most ``max_gap``, and the problems that they make."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

import minmaxcon as mm
from minmaxcon import checks
from minmaxcon.arrays import namespace
from minmaxcon_problems.fair_auc.bounds import Details, checked_gap
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.measured import GroupSigns, comparisons
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, MetricSet, resolve_metrics
from minmaxcon_problems.fair_auc.surrogate.build import checked_model, checked_weight

from .followed import AUCGapMeasure
from .objectives import AUCObjective, GaussNewton, ScoreObjective, SmoothedAUC, named_objective
from .ridge import Ridged, ridge_matrix
from .signs import SignedBall

__all__ = [
    "NO_TARGET",
    "Target",
    "build_target_problem",
    "comparison_masks",
    "observed",
    "signed_bounds",
    "timed_out",
    "used_up",
    "without_target",
]

NO_TARGET = 1.0
"""No two AUCs differ by more than this."""

_NO_TIME = 1e-9
"""Seconds of a solve that has no time left: it ends at once, with what it has begun from."""

_UNBOUND = 2.0
"""The bound where there is no target: one of 1 is active at models that separate the groups, and they are kept off."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Target:
    """A target, and how it is to be met; checked once, here, and passed on as it is.

    ``max_gap``, in the unit of the AUC, is one number for a fit, or an array (R,). ``objective`` is what is best
    subject to it: the AUC itself, in a smooth form; its quadratic loss; the logistic loss. The model is linear by
    default, and ``radius`` is that of the ball of its parameters; ``ridge`` is the variance of the noise that its
    features are taken to have, the alpha of ridge regression over the number of rows; half of ``decay`` times the
    squared norm of a network's parameters is added to the objective; ``signs`` (d,) are those that
    coefficients of a linear model are to have, 1, -1 or 0 for any. ``bandwidth`` is the smoothing of
    the followed distributions, in standard deviations of the scores. ``damping`` is that of the Gauss-Newton matrix,
    relative to the mean of its diagonal; by default next to none for a linear model and 30 for others. Less is faster,
    and lets a network overfit the rows of a small group. Where an objective is followed, at most ``warmup_steps`` outer
    steps on the quadratic loss come first. ``seed`` is that of a network's starting parameters and of all draws.

    ``method`` is how a fit meets the target: "following", surrogates that follow the true AUC; or "bounds", one bound
    for each side of the quadratic surrogate, many pairs of bounds in one solve (linear models, not the logistic loss).
    ``demand`` is what must meet it on held-out data: the gap itself, or the upper end of its 95% interval; "new_rows"
    is the average over rows left out in folds, for :func:`.fit.fit_new_rows`.
    ``early_stopping`` takes, of the models that training passes and whose training gap is within the goal, the best on
    held-out rows, for a network.
    ``shifts`` counts the last features that tell a row's group, for a linear model: where a target is missed, training
    begins once more without them.
    ``iterations`` is the largest number of outer steps of a fit, 200 by default; the method "bounds" has none.
    ``time_limit`` is in seconds; ``until`` is the time of ``time.perf_counter()`` by which the fit ends, by default so
    much later than its search begins. Raises InvalidInput or UnknownName for whatever cannot be used, named with the
    remedy.
    """

    metric: FairnessMetric | MetricSet | Any
    max_gap: Any
    objective: ScoreObjective | Any = "auc"
    model: mm.Model | None = None
    radius: float = 10.0
    ridge: float = 0.0
    decay: float = 0.0
    signs: Any = None
    shifts: int = 0
    bandwidth: float = 0.1
    damping: float | None = None
    warmup_steps: int = 60
    seed: int = 0
    method: Literal["following", "bounds"] = "following"
    demand: Literal["value", "upper", "new_rows"] = "value"
    early_stopping: bool = False
    iterations: int | None = None
    time_limit: float | None = None
    until: float | None = None

    def __post_init__(self) -> None:
        limit, damping = self.time_limit, self.damping
        for name, checked in {
            "metric": resolve_metrics(self.metric),
            "max_gap": checked_gap(self.max_gap),
            "objective": named_objective(self.objective),
            "radius": checks.positive("radius", self.radius),
            "ridge": checks.number("ridge", self.ridge, "must be finite and at least 0.", least=0.0),
            "decay": checks.number("decay", self.decay, "must be finite and at least 0.", least=0.0),
            "bandwidth": checks.number(
                "bandwidth", self.bandwidth, "must be positive and finite: 0.1 is a tenth of the spread.", above=0.0
            ),
            "damping": None if damping is None else checks.number("damping", damping, "at least 0 or None.", least=0.0),
            "warmup_steps": checks.whole("warmup_steps", self.warmup_steps),
            "seed": checks.seed_number("seed", self.seed),
            "shifts": checks.whole("shifts", self.shifts, least=0),
            "iterations": None if self.iterations is None else checks.whole("iterations", self.iterations),
            "time_limit": None
            if limit is None
            else checks.number("time_limit", limit, "must be a positive number of seconds.", above=0.0),
        }.items():
            object.__setattr__(self, name, checked)
        for name, choices in _CHOICES.items():
            checks.choice(name, getattr(self, name), choices)
        if self.model is not None:
            checked_model(self.model, 1)
        if self.ridge > 0 and not (self.model is None or isinstance(self.model, mm.Linear)):
            raise mm.InvalidInput("ridge", self.ridge, "is for linear models; leave it out for networks.")
        if self.decay > 0 and (self.model is None or isinstance(self.model, mm.Linear)):
            raise mm.InvalidInput("decay", self.decay, "is for networks; linear models have ridge.")
        if self.signs is not None and not (self.model is None or isinstance(self.model, mm.Linear)):
            raise mm.InvalidInput("signs", self.signs, "are for linear models; leave them out for networks.")
        if self.method == "bounds":
            self._check_bounds()

    def started(self) -> Target:
        """Return the target with the clock running, where it has a limit and the clock is not running yet."""
        if self.time_limit is None or self.until is not None:
            return self
        if self.model is not None and self.model.engine == "torch":
            importlib.import_module("torch")  # which is not on the clock
        return replace(self, until=time.perf_counter() + self.time_limit)

    @property
    def left(self) -> float | None:
        """The seconds that are left; a limit that is not reached must not change anything."""
        return None if self.until is None else max(self.until - time.perf_counter(), _NO_TIME)

    @property
    def over(self) -> bool:
        """Whether no time is left."""
        return self.left == _NO_TIME

    @property
    def spent(self) -> float:
        """The seconds of the limit that are not left, 0 without a limit."""
        return 0.0 if self.time_limit is None or self.left is None else max(self.time_limit - self.left, 0.0)

    def _check_bounds(self) -> None:
        if self.signs is not None:
            raise mm.InvalidInput("signs", self.signs, 'act with method "following" only; leave them out.')
        if self.ridge > 0:
            raise mm.InvalidInput("ridge", self.ridge, 'acts with method "following" only; leave it out.')
        if not (self.model is None or isinstance(self.model, mm.Linear)):
            raise mm.InvalidInput("method", "bounds", 'needs a linear model; use "following" for networks.')
        if type(self.objective) not in (AUCObjective, SmoothedAUC):
            remedy = 'bounds the quadratic AUC loss: use objective "auc", or method "following".'
            raise mm.InvalidInput("method", "bounds", remedy)
        if self.iterations is not None:
            raise mm.InvalidInput("iterations", self.iterations, 'method "bounds" has no outer steps; leave it out.')

    def model_for(self, rows: LabelledData) -> mm.Model:
        """Return the scoring model of some rows."""
        return mm.Linear(rows.features.shape[1]) if self.model is None else self.model


_CHOICES = {"method": ("following", "bounds"), "demand": ("value", "upper", "new_rows")}


def build_target_problem(
    rows: LabelledData,
    target: Target,
    *,
    row_weight: Any = None,
    dataset: Dataset | None = None,
    engine: str | None = None,
    dtype: str | None = None,
    device: str = "cpu",
) -> mm.RefreshedProblem:
    r"""Build the problem: the best objective subject to :math:`|AUC(G_1,G_1') - AUC(G_2,G_2')| \le` ``max_gap``.

    x = (w, the objective's own variables). The problem starts at a model that meets every target; where the objective
    is followed, the problem of the quadratic loss without a target is its ``first``. A target of 1 bounds nothing, and
    its bound is 2. A row stands for ``row_weight`` (n,) rows, all positive. ``dataset``, whose training part the rows
    are, is kept for evaluation. Engine and precision are by default the model's own, in float64 for a linear model and
    in float32 for others. Raises InvalidInput where weights are not positive, DataError where a subset of the metric,
    or a class, is empty.
    """
    loss, model = target.objective, target.model_for(rows)
    masks = comparison_masks(target.metric, rows)
    positive, weight = rows.label > 0, checked_weight(row_weight, len(rows))
    linear = isinstance(model, mm.Linear)
    subsets = masks * weight[:, None]
    features = rows.features if linear or not hasattr(rows.features, "tocsr") else rows.features.toarray()
    engine = model.engine if engine is None else engine
    dtype = ("float64" if linear else "float32") if dtype is None else dtype
    arrays = {"features": features, "subsets": subsets / subsets.mean(axis=0), **loss.arrays(positive, weight)}
    data = mm.Finite(arrays, engine=engine, dtype=dtype, device=device)
    parts = [np.flatnonzero(~positive), np.flatnonzero(positive)]
    matrix, added = loss.curvature(), loss.ridge_curvature * target.ridge + target.decay
    if added > 0:
        matrix = ridge_matrix(matrix, added)
    curvature = GaussNewton(model, features, parts, weight, matrix, loss.quadratic, target.damping)
    kept = None if row_weight is None else weight
    measure = AUCGapMeasure(
        model,
        data,
        curvature,
        bandwidth=target.bandwidth,
        row_weight=kept,
        follow_loss=loss.followed,
        ridge=target.ridge,
        decay=target.decay,
    )
    means = np.stack([np.asarray(features[part].mean(axis=0)).ravel() for part in parts])
    reach = max(float(np.max(model.score_bound(target.radius, means))), 1e-6)
    first: mm.RefreshedProblem | None = None
    if loss.followed:
        free = replace(target, objective=AUCObjective(loss.c1, loss.c2), max_gap=NO_TARGET)
        first = build_target_problem(rows, free, row_weight=row_weight, engine=engine, dtype=dtype, device=device)
    start = np.concatenate([model.start(target.seed), np.zeros(loss.variables)])
    seen = measure.observe(namespace(data.like).asarray(start[None], data.like))
    signs, offsets = target.signs, [reach] * loss.variables
    ball = mm.Ball(model.dimension, target.radius) if signs is None else SignedBall(target.radius, signs)
    objective = seen.objective_surrogate()
    if objective is None:
        objective = loss.constraint(model, target.radius, reach)
        objective = Ridged(objective, added, model.dimension) if added > 0 else objective
    return mm.RefreshedProblem(
        objective=objective,
        constraints=[side.with_bound(_bounds_of(target.max_gap)) for side in seen.surrogates()],
        primal=mm.product([ball, mm.Box([-bound for bound in offsets], offsets)]) if offsets else ball,
        data=data,
        start=start,
        name=f"fair_auc: {rows.name}, {target.metric.name}, target gap",
        details=Details(
            metric=target.metric.members[0],  # for evaluation, which problems of several metrics do not have
            model=model,
            dataset=dataset,
            max_gap=target.max_gap,
            c1=loss.c1,
            c2=loss.c2,
            objective=loss.name,
            alpha=float(f"{(target.ridge + target.decay) * len(rows):.12g}"),
        ),
        measure=measure,
        first=first,
        first_steps=target.warmup_steps,
    )


def _bounds_of(goals: Any) -> Any:
    """Return what the gap is bound by for each goal."""
    return np.where(np.asarray(goals) >= NO_TARGET, _UNBOUND, goals)[()]  # a number for a number


def without_target(problem: mm.MinMaxProblem) -> mm.MinMaxProblem:
    """Return the problem with bounds that no model comes near."""
    return problem.with_bounds(*[_UNBOUND] * len(problem.constraints))


def comparison_masks(metric: FairnessMetric | MetricSet, rows: LabelledData) -> Any:
    """Return the masks (n, 4 K) of each metric for each comparison: of a group with the rest, or of two groups.

    Raises DataError where a subset, or a class, is empty; the groups are named where there are several.
    """

    def source(group: GroupSigns) -> str:
        if group.pair:
            return f"{rows.name}, groups {group.value!r} (protected) and {group.rest!r} (unprotected) alone"
        return rows.name if rows.more_groups is None else f"{rows.name}, group {group.value!r} against the rest"

    return np.concatenate(
        [
            one.masks_of(rows.label, group.signs, source(group))
            for one in metric.members
            for group in comparisons(rows, metric)
        ],
        axis=1,
    )


def observed(problem: mm.RefreshedProblem, x: Any) -> mm.Observation:
    """Return what the problem's measure says at points x (R, d) or (d,)."""
    like = problem.data.like
    return problem.measure.observe(namespace(like).asarray(np.atleast_2d(x), like))


def signed_bounds(problem: mm.RefreshedProblem, free: Any, goals: Any) -> mm.MinMaxProblem:
    r"""Return the problem of several goals, each for the gap in the direction that it has without a target.

    A goal :math:`c \ge 0` bounds the gap on both sides, as a target does. A goal :math:`c < 0` asks for a gap of at
    least :math:`|c|` in the other direction: where held-out data show more bias than the training data, that is what
    brings their gap to 0. There is one run for each goal; ``free`` (d,) is the solution without a target. Goals are at
    least 0 where there are several gaps, all of which are bound. A goal of 1 bounds nothing.
    """
    goal = _bounds_of(np.asarray(goals, dtype=np.float64))
    if len(problem.constraints) > 2:
        return problem.with_bounds(*[goal] * len(problem.constraints))
    positive = bool(observed(problem, free).values[0, 0] >= 0)
    other = np.where(goal >= 0, goal, _UNBOUND)
    return problem.with_bounds(goal, other) if positive else problem.with_bounds(other, goal)


def used_up(solution: mm.Solution) -> bool:
    """Return whether a solve went on until its last outer step."""
    return "outer steps" in solution.reason


def timed_out(solution: mm.Solution) -> bool:
    """Return whether a solve went on until its time limit."""
    limit = solution.settings["time_limit"]
    return limit is not None and solution.seconds >= limit

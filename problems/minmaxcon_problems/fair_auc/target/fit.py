"""The fit of a model to a target in the metric's own unit, and what the target costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon import metrics
from minmaxcon.checks import finite_array
from minmaxcon.metrics import AUCEstimate
from minmaxcon.solvers import ends_together
from minmaxcon_problems.fair_auc.evaluation import measured_model, objective_at
from minmaxcon_problems.fair_auc.labelled import LabelledData, protected_option
from minmaxcon_problems.fair_auc.measured import comparisons, is_constant
from minmaxcon_problems.fair_auc.metrics import UNCONSTRAINED, FairnessMetric, MetricSet

from .problem import (
    NO_TARGET,
    Target,
    build_target_problem,
    comparison_masks,
    observed,
    signed_bounds,
    timed_out,
    used_up,
)
from .side_bounds import side_problem, solve_side_bounds

__all__ = ["FairFit", "LeftOut", "fit_new_rows", "fit_new_rows_path", "fit_path", "fit_target"]

_TIGHTER = (1.0, 0.8, 0.6, 0.4, 0.2, 0.05)
"""Training targets, as shares of the target on held-out data; all are solved at once."""

_BEYOND = (-0.005, -0.01, -0.015, -0.02, -0.03, -0.045, -0.065, -0.09)
"""Signed training gaps that go to the other side, for held-out data that show more bias than the training data."""

_MARGIN = 2e-4
"""How far below a target the steps aim, where the target is not smaller than ten times this."""


_BETTER = 1e-3
"""By how much one AUC is to exceed another before that is more than what training leaves open."""

_STEPS = 200
"""The largest number of outer steps of a fit, where none is asked for."""

_IN_FOLDS = 40
"""Outer steps of the fits in folds, whose last digits are less than chance."""

_FAR = 0.01
"""By how much more than its goal a gap is to be before other ways to it are tried."""

_BETWEEN = 3
"""Goals between the gap without a target and one that was missed."""

_TURNED = "The model was turned round: its negative has the same gap, and ranks better than chance."

_TRAINING_GOAL_MISSED = (mm.Status.OUT_OF_REACH, mm.Status.NOT_STRICTLY_FEASIBLE)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class FairFit:
    """A fitted model and what is known of it.

    Parameters (d,) are in the units of the features given; ``free_parameters`` are those of the best model known,
    whether it meets the target or not, from which ``price`` is counted. ``status`` is ``SOLVED`` (the target is met at
    a nearly stationary point), ``BUDGET`` (met, and stopped early), ``OUT_OF_REACH`` (not met by any model of a search
    that came to its end: the fairest one found is returned), ``UNFINISHED`` (not met when the time ended or the steps
    that were asked for, or no model was found yet that ranks rows) or ``INTERRUPTED`` (not met before Ctrl-C), and
    ``reason`` the evidence.

    ``max_gap`` is the target, None where a bound of the surrogate was asked for; ``target`` is what the training data
    were held to, smaller than ``max_gap`` where held-out data asked for it, and negative where they asked for a gap in
    the other direction; that of another goal, where its model serves better, and ``max_gap`` where the model without a
    target meets that. True gap and AUC, with 95% intervals, are those on the training data, on held-out data,
    and, as ``unconstrained``, those of the best model known on the data that the target is about. ``surrogate``
    has the surrogates' values on the training data, ``objective`` and ``gap``, the smoothed one; ``solution`` is the
    solve that the model comes from. Where its negative is returned, since it ranked worse than chance, all three are
    about the negative, of which nothing is proved. ``starts_left`` counts a network's starts that no time was left for.
    """

    parameters: Any
    free_parameters: Any
    model: mm.Model
    status: mm.Status
    reason: str
    max_gap: float | None
    target: float | None
    train_gap: AUCEstimate
    train_auc: AUCEstimate
    validation_gap: AUCEstimate | None
    validation_auc: AUCEstimate | None
    unconstrained_auc: AUCEstimate
    unconstrained_gap: AUCEstimate
    surrogate: Mapping[str, float]
    solution: mm.Solution
    starts_left: int = 0

    def __post_init__(self) -> None:
        """Count the price from this model where none is known that is better: a price is at least 0."""
        if self.auc.value > self.unconstrained_auc.value:
            best = {"free_parameters": self.parameters, "unconstrained_auc": self.auc, "unconstrained_gap": self.gap}
            for name, value in best.items():
                object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields with statuses by name: readers that run no code, such as skops, make no enum's members."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        solution = replace(self.solution, status=self.solution.status.name)
        return {**state, "status": self.status.name, "solution": solution}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the fields."""
        solution = state["solution"]
        solution = replace(solution, status=mm.Status[solution.status])
        for name, value in {**state, "status": mm.Status[state["status"]], "solution": solution}.items():
            object.__setattr__(self, name, value)

    @property
    def gap(self) -> AUCEstimate:
        """The true gap on the data that the target is about: the held-out ones, where there are any."""
        return self.train_gap if self.validation_gap is None else self.validation_gap

    @property
    def auc(self) -> AUCEstimate:
        """The AUC on the same data."""
        return self.train_auc if self.validation_auc is None else self.validation_auc

    @property
    def price(self) -> float:
        """AUC of the best model known less this one's, on the same data: 0 where no model known is better than this.

        The best one is chosen as the model is: by the AUC on the held-out data with early stopping, else by that on
        the training data.
        """
        return self.unconstrained_auc.value - self.auc.value


def fit_target(
    train: LabelledData,
    target: Target,
    *,
    validation: LabelledData | None = None,
    row_weight: Any = None,
    validation_weight: Any = None,
    start: Any = None,
    callbacks: Sequence[Any] = (),
) -> FairFit:
    """Return the model of best AUC whose true gap is at most ``target.max_gap``.

    Where the target is out of reach, it is the fairest model found, with a status that says so. The target is about
    ``validation`` where that is given: the training target is tightened until the gap there meets it. A training row
    stands for ``row_weight`` (n,) rows, all positive, and one of ``validation`` for ``validation_weight``. From
    ``start`` (d,), parameters, models with a target start, in the place of those of the model without one.
    ``callbacks`` are as for :func:`minmaxcon.solve`. Raises InvalidInput or DataError for what cannot be used, named
    with the remedy.
    """
    if np.ndim(target.max_gap) != 0:
        raise mm.InvalidInput("max_gap", target.max_gap, "must be one number; fit_path makes one fit for each target.")
    weights = {"row_weight": row_weight, "validation_weight": validation_weight}
    return fit_path(
        train, target, [target.max_gap], validation=validation, start=start, callbacks=callbacks, **weights
    )[0]


def fit_path(
    train: LabelledData,
    target: Target,
    gaps: Sequence[float],
    *,
    validation: LabelledData | None = None,
    row_weight: Any = None,
    validation_weight: Any = None,
    start: Any = None,
    callbacks: Sequence[Any] = (),
) -> list[FairFit]:
    """Return the fit of each of several targets, in the place of the target's own, all from one solve.

    Arguments and errors are those of :func:`fit_target`.
    """
    if validation is not None:
        columns, expected = validation.features.shape[1], train.features.shape[1]
        if columns != expected:
            raise mm.InvalidInput("validation", f"{columns} features", f"must have the {expected} of train.")
        masks = comparison_masks(target.metric, validation)
        if target.demand == "upper":
            _require_two(target.metric, masks, validation)
    target = replace(target, model=target.model_for(train))
    judges = [
        _Judge(train, validation, row_weight, validation_weight, replace(target, max_gap=float(gap))) for gap in gaps
    ]
    goals = [judge.goals for judge in judges]
    begin = None if start is None else _checked_start(start, target, train)
    solve = _by_bounds if target.method == "bounds" else _by_following
    with ends_together():
        solved = solve(min(judges, key=lambda judge: judge.target.max_gap), np.concatenate(goals), begin, callbacks)
    ends = np.cumsum([0, *(part.size for part in goals)])
    return [_chosen(solved.part(*ends[k : k + 2]), judge) for k, judge in enumerate(judges)]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Gap and AUC on rows left out of training, averaged over folds; ``goal`` is what the training gap was held to."""

    goal: float
    gap: float
    auc: float
    folds: int


def fit_new_rows(
    train: LabelledData, target: Target, folds: Sequence[tuple[Any, Any]], *, row_weight: Any = None
) -> tuple[FairFit, LeftOut]:
    """Return the model of best AUC whose gap on new rows is at most ``target.max_gap``, as far as folds tell.

    ``folds`` are indices of rows to train on and of rows left out. A model is fitted for each of several training gaps
    in each fold; signed gaps on the rows left out are averaged, so that chance, which goes both ways, does not count as
    bias. The loosest training gap whose average is within the target is what all rows are then held to. Where none is,
    it is the one of the least average, with the status ``OUT_OF_REACH``. Errors are those of :func:`fit_target`.
    """
    target = replace(target, model=target.model_for(train)).started()
    gaps: list[Any] = []
    areas, goals = [], np.zeros(0)
    # Of a limit that is reached a share is kept for the model itself.
    until = None if target.until is None else target.until - (target.left or 0.0) / (len(folds) + 1)
    steps = _IN_FOLDS if target.iterations is None else target.iterations
    short = replace(target, iterations=steps, until=until)
    with ends_together() as signals:
        for part, rest in folds:
            if gaps and (short.over or signals):
                break
            own, other = (None, None) if row_weight is None else (row_weight[part], row_weight[rest])
            judge = _Judge(train.select(part), train.select(rest), own, other, short)
            goals = judge.goals[judge.goals >= 0]  # chance goes both ways, and is averaged out
            solved = _by_following(judge, goals, None, ())
            if gaps and (short.over or signals):  # a fold that was cut short
                break
            found = [judge.signed(one.run) for one in solved.goals]
            gaps.append([gap for gap, _ in found])
            areas.append([area for _, area in found])
        stopped = list(signals)  # before the folds were over
        average = np.abs(np.mean(gaps, axis=0)).max(axis=1)
        fair = np.flatnonzero(average <= target.max_gap)
        best = int(fair[0]) if fair.size else int(np.argmin(average))
        left = LeftOut(float(goals[best]), float(average[best]), float(np.mean(areas, axis=0)[best]), len(gaps))
        judge = _Judge(train, None, row_weight, None, replace(target, max_gap=left.goal))
        fit = _chosen(_by_following(judge, goals[best : best + 1], None, ()), judge)
    fit = replace(fit, max_gap=target.max_gap)
    if stopped:
        reason = f"Stopped by {stopped[0]} within the folds. {fit.reason}"
        return replace(fit, status=mm.Status.INTERRUPTED, reason=reason), left
    if len(gaps) < len(folds):
        reason = f"The time limit of {target.time_limit} s was reached within the folds. {fit.reason}"
        return replace(fit, status=mm.Status.UNFINISHED, reason=reason), left
    if not fair.size:
        reason = f"The least gap on rows left out is {left.gap:.4g}, above the target {target.max_gap:g}."
        return replace(fit, status=mm.Status.OUT_OF_REACH, reason=reason), left
    return fit, left


def fit_new_rows_path(
    train: LabelledData,
    target: Target,
    gaps: Sequence[float],
    folds: Sequence[tuple[Any, Any]],
    *,
    row_weight: Any = None,
) -> list[tuple[FairFit, LeftOut]]:
    """Return what :func:`fit_new_rows` finds of each of several targets, in the place of the target's own.

    They share the time limit. Where no time is left to begin one, its model is that of the loosest target that was
    begun and is as tight, else of the tightest, with the status ``UNFINISHED``; after a signal ``INTERRUPTED``.
    """
    target = replace(target, model=target.model_for(train)).started()
    begun = dict[float, tuple[FairFit, LeftOut]]()
    found = []
    with ends_together() as signals:
        for gap in map(float, gaps):
            if begun and (target.over or signals):
                taken = max((one for one in begun if one <= gap), default=min(begun))
                fit, left = begun[taken]
                ended = f"{signals[0]} came" if signals else f"The time limit of {target.time_limit} s was reached"
                reason = (
                    f"{ended} before this target was begun, and the model is that of the target {taken:g}. {fit.reason}"
                )
                status = mm.Status.INTERRUPTED if signals else mm.Status.UNFINISHED
                found.append((replace(fit, max_gap=gap, status=status, reason=reason), left))
            else:
                begun[gap] = fit_new_rows(train, replace(target, max_gap=gap), folds, row_weight=row_weight)
                found.append(begun[gap])
    return found


def _require_two(metric: FairnessMetric | MetricSet, masks: Any, rows: LabelledData) -> None:
    """Refuse an interval that a single row would have to give."""
    sizes = masks.sum(axis=0)
    if sizes.min() < 2:
        subsets = [subset for one in metric.members for _ in comparisons(rows, metric) for subset in one.subsets]
        subset = subsets[int(np.argmin(sizes))]
        remedy = f'only one row is {subset}, and demand="upper" asks for an interval, which needs two; add such rows.'
        raise mm.DataError(rows.name, remedy)


def _checked_start(start: Any, target: Target, train: LabelledData) -> Any:
    """Return a start with zeros for the objective's own variables.

    Raises InvalidInput if it is of another size or not finite, or gives all rows one score where the AUC is followed.
    """
    model, following = target.model_for(train), target.method == "following"
    dimension = model.dimension + (target.objective.variables if following else 0)
    remedy = f"must hold at most {dimension} finite numbers, the parameters first."
    given = finite_array("start", start, remedy).ravel()
    if given.size > dimension:
        raise mm.InvalidInput("start", start, remedy)
    padded = np.concatenate([given, np.zeros(dimension - given.size)])
    if (
        following
        and target.objective.followed
        and np.ptp(model.predict(padded[: model.dimension], train.features)) == 0
    ):
        raise mm.InvalidInput("start", start, "gives all rows one score, where an AUC has no slope; leave it out.")
    return padded


@dataclass(frozen=True, eq=False, slots=True)
class _Judge:
    """Measures models by the data that a target is about: the held-out ones, where there are any."""

    train: LabelledData
    validation: LabelledData | None
    row_weight: Any
    validation_weight: Any
    target: Target

    @property
    def goals(self) -> Any:
        """The goals for the training gap, the loosest first."""
        gap = self.target.max_gap
        if gap >= NO_TARGET:  # which every model meets, held out too
            return np.array([gap])
        if self.validation is None:
            return np.array([gap])
        several = len(self.target.metric.members) * len(self.train.each_group) > 1
        return np.array([gap * share for share in _TIGHTER] + ([] if several else list(_BEYOND)))

    def parameters(self, run: mm.Solution) -> Any:
        """Return the model's parameters (d,), without variables of the objective's own."""
        return np.asarray(run.x)[: self.target.model_for(self.train).dimension]

    def on_train(self, run: mm.Solution) -> tuple[AUCEstimate, AUCEstimate]:
        """Return gap and AUC on the training data."""
        return self.on(self.parameters(run), held_out=False)

    def on(self, parameters: Any, *, held_out: bool) -> tuple[AUCEstimate, AUCEstimate]:
        """Return gap and AUC of the model with some parameters (d,) on the held-out or on the training data."""
        rows: Any
        rows, weight = (self.validation, self.validation_weight) if held_out else (self.train, self.row_weight)
        return measured_model(self.target.model_for(self.train), parameters, rows, self.target.metric, weight)

    def turns(self, found: tuple[AUCEstimate, AUCEstimate]) -> bool:
        """Tell whether a model, measured on the data that the target is about, ranks worse than chance.

        Its negative, whose gap is the same, then takes its place, where the model is linear and has no signs to keep.
        """
        free = self.target.signs is None and isinstance(self.target.model_for(self.train), mm.Linear)
        return free and found[1].value < 0.5 - _BETTER

    def turned(self, one: _Candidate) -> _Candidate:
        """Return the negative of a linear model, measured; its solution proves nothing."""
        run, x, smoothed = one.run, -one.run.x, one.smoothed
        if self.target.method == "bounds":
            problem, constraints = side_problem(self.train, self.target), run.constraints
        else:
            problem = build_target_problem(self.train, self.target, row_weight=self.row_weight)
            constraints = run.constraints.reshape(-1, 2)[:, ::-1].ravel()  # both sides of each gap
            smoothed = float(np.abs(observed(problem, x).smoothed).max())
        turned = replace(
            run,
            x=x,
            objective=objective_at(problem, x),
            constraints=constraints,
            status=mm.Status.BUDGET if run.status is mm.Status.SOLVED else run.status,
            certificate=mm.Certificate("none", np.inf, -np.inf, 0.0),
            reason=f"{run.reason} {_TURNED}",
            evidence=None,
        )
        return _Candidate(turned, self.on_train(turned), smoothed, one.goal)

    @property
    def early(self) -> bool:
        """Whether models are chosen by their AUC on held-out data, in the place of the training data."""
        return self.target.early_stopping and self.validation is not None

    def area(self, one: _Candidate) -> float:
        """Return the AUC on the data by which models are chosen."""
        return self.measured(one.run)[1].value if self.early else one.area

    def measured(self, run: mm.Solution) -> tuple[AUCEstimate, AUCEstimate]:
        """Return gap and AUC on the data that the target is about."""
        return self.on(self.parameters(run), held_out=self.validation is not None)

    def signed(self, run: mm.Solution) -> tuple[Any, float]:
        """Return the signed gaps (K,), of each metric for each group, and the AUC on the held-out data."""
        rows: Any = self.validation
        scores = self.target.model_for(self.train).predict(self.parameters(run), rows.features)
        masks, weight = comparison_masks(self.target.metric, rows), self.validation_weight
        found = [_auc(scores, masks[:, g], masks[:, g + 1], weight) for g in range(0, masks.shape[1], 2)]
        return np.array(found[::2]) - np.array(found[1::2]), self.measured(run)[1].value

    def constant(self, run: mm.Solution) -> bool:
        """Whether all training rows have one score."""
        model = self.target.model_for(self.train)
        return is_constant(model.predict(self.parameters(run), self.train.features))

    @property
    def by_interval(self) -> bool:
        """Whether the end of the interval is what counts."""
        return self.target.demand == "upper" and self.validation is not None

    def reached(self, found: tuple[AUCEstimate, AUCEstimate]) -> float:
        """Return what must not be above the target."""
        return found[0].upper if self.by_interval else found[0].value

    def shortfall(self, found: tuple[AUCEstimate, AUCEstimate]) -> str:
        """Say by how much a target is missed."""
        what = "upper end of the interval of the gap" if self.by_interval else "gap"
        where = "the data" if self.validation is None else "held-out data"
        missed = self.reached(found)
        return f"The least {what} found on {where} is {missed:.4g}, above the target {self.target.max_gap:g}."


@dataclass(frozen=True, eq=False, slots=True)
class _Candidate:
    """A model of a solve, its gap and AUC on the training data, its smoothed gap where that is known, and its goal."""

    run: mm.Solution
    on_train: tuple[AUCEstimate, AUCEstimate]
    smoothed: float
    goal: float

    @property
    def area(self) -> float:
        """The AUC on the training data."""
        return self.on_train[1].value

    @property
    def gap(self) -> float:
        """The gap on the training data."""
        return self.on_train[0].value


@dataclass(frozen=True, eq=False, slots=True)
class _Candidates:
    """Models for all training goals, the one without a goal, and those for other targets of the same solve."""

    goals: list[_Candidate]
    free: _Candidate
    others: tuple[_Candidate, ...] = ()
    interrupted: bool = False  # by a signal before all was tried
    note: str = ""

    @classmethod
    def of(
        cls, judge: _Judge, goals: Any, runs: Sequence[mm.Solution], free: mm.Solution, smoothed: Any, **more: Any
    ) -> _Candidates:
        """Return candidates, measured; the last of the smoothed gaps is that of the model without a goal."""
        parts = zip((*runs, free), smoothed, (*goals, NO_TARGET), strict=True)
        found = [_Candidate(run, judge.on_train(run), float(gap), float(goal)) for run, gap, goal in parts]
        return cls(found[:-1], found[-1], **more)

    @property
    def every(self) -> tuple[_Candidate, ...]:
        """All models, the one without a goal first."""
        return (self.free, *self.goals, *self.others)

    def part(self, begin: int, end: int) -> _Candidates:
        """Return the models for some of the goals."""
        others = (*self.goals[:begin], *self.goals[end:], *self.others)
        return replace(self, goals=self.goals[begin:end], others=others)


def _by_bounds(judge: _Judge, wanted: Any, start: Any, callbacks: Sequence[Any]) -> _Candidates:
    if len(judge.target.metric.members) * len(judge.train.each_group) > 1:
        option = protected_option(judge.train.each_other)
        remedy = f'bounds one gap of two groups: use "following", or say with {option} which group is meant.'
        raise mm.InvalidInput("method", "bounds", remedy)
    if judge.row_weight is not None:
        remedy = 'method "bounds" takes no weights; use method "following".'
        raise mm.InvalidInput("row_weight", judge.row_weight, remedy)
    goals = np.append(np.maximum(wanted, 0.0), NO_TARGET)
    both = solve_side_bounds(judge.train, judge.target, goals, start=start, callbacks=callbacks)
    *runs, free = (both[j] for j in range(len(goals)))
    return _Candidates.of(judge, wanted, runs, free, np.full(len(goals), np.nan))


def _by_following(judge: _Judge, goals: Any, start: Any, callbacks: Sequence[Any]) -> _Candidates:
    target = judge.target.started()
    solver = mm.SuccessiveApproximation(
        iterations=_STEPS if target.iterations is None else target.iterations,
        tolerance=target.objective.tolerance,
        margin=min(_MARGIN, 0.1 * target.max_gap),
    )
    unbound = replace(target, max_gap=NO_TARGET)
    problem = without = build_target_problem(judge.train, unbound, row_weight=judge.row_weight)
    if len(problem.constraints) > 2 or target.signs is not None:
        # From constant scores any step moves all gaps at an infinite rate, and none goes on along which none moves; nor
        # need one that keeps signs.
        unbound = replace(unbound, metric=UNCONSTRAINED)
        without = build_target_problem(judge.train, unbound, row_weight=judge.row_weight)
    watches = [_Watch(judge, [NO_TARGET]), _Watch(judge, goals)] if judge.early else []
    free = mm.solve(without, solver, seed=target.seed, time_limit=target.left, callbacks=[*callbacks, *watches[:1]])
    if watches:
        free = watches[0].best(free, 0)
    both = mm.solve(
        signed_bounds(problem, free.x, goals),
        solver,
        seed=target.seed,
        x0=free.x if start is None else start,
        time_limit=target.left,
        callbacks=[*callbacks, *watches[1:]],
    )
    runs = [watches[1].best(both[j], j) if watches else both[j] for j in range(len(goals))]

    def smooth(solutions: Sequence[mm.Solution]) -> Any:
        return np.abs(observed(problem, np.vstack([run.x for run in solutions])).smoothed).max(axis=1)

    stopped = mm.Status.INTERRUPTED in (free.status, *both.status)
    found = _Candidates.of(judge, goals, runs, free, smooth([*runs, free]), interrupted=stopped)
    if not stopped and not watches:

        def solve(wanted: Any, begin: Any) -> list[_Candidate]:
            """Return models for some goals, from where others have ended."""
            bound = signed_bounds(problem, free.x, wanted)
            several = mm.solve(bound, solver, seed=target.seed, x0=begin, time_limit=target.left, callbacks=callbacks)
            made = [several[j] for j in range(len(wanted))]
            parts = zip(made, smooth(made), wanted, strict=True)
            return [_Candidate(run, judge.on_train(run), float(gap), float(goal)) for run, gap, goal in parts]

        found = _closer(_without_shifts(found, judge, goals, solve), goals, solve)
    best = max(found.goals, key=judge.area)
    free_area, best_area = judge.area(found.free), judge.area(best)
    if found.interrupted or best_area <= free_area + _BETTER:
        return found
    # A network has many optima: the one without a target was worse than one with, and is looked for from there.
    watch = [_Watch(judge, [NO_TARGET])] if watches else []
    again = mm.solve(
        without, solver, seed=target.seed, x0=best.run.x, time_limit=target.left, callbacks=[*callbacks, *watch]
    )
    again = watch[0].best(again, 0) if watch else again
    both_free = found.free, _Candidate(again, judge.on_train(again), float(smooth([again])[0]), NO_TARGET)
    free_again = max(both_free, key=judge.area)
    what = "a held-out AUC" if judge.early else "an AUC"
    note = (
        f"Without a target training had ended at {what} of {free_area:.3f}, below the {best_area:.3f} with one; "
        f"it was trained again from there, to {judge.area(free_again):.3f}."
    )
    return replace(found, free=free_again, note=note)


def _closer(found: _Candidates, goals: Any, solve: Callable[[Any, Any], list[_Candidate]]) -> _Candidates:
    """Look again for models of goals that were missed by far, from fairer models on the way to them.

    With many gaps the way from the model without a target may end where none can fall without another's rising. Goals
    between lead around such points, and ``solve(goals, start)`` goes on from the fairest model.
    """
    far = [
        j
        for j, one in enumerate(found.goals)
        if one.run.status is mm.Status.OUT_OF_REACH and one.gap > abs(goals[j]) + _FAR
    ]
    if found.interrupted or not far:
        return found
    strictest, free = max(min(abs(goals[j]) for j in far), _MARGIN), found.free.gap
    between = solve(np.geomspace(strictest, max(free, 2.0 * strictest), _BETWEEN + 2)[1:-1], found.free.run.x)
    found = replace(found, others=(*found.others, *between))
    if any(one.run.status is mm.Status.INTERRUPTED for one in between):
        return replace(found, interrupted=True)
    fairest = min(found.every, key=lambda one: one.gap)
    return _again(found, far, goals, solve, fairest.run.x)


def _without_shifts(
    found: _Candidates, judge: _Judge, goals: Any, solve: Callable[[Any, Any], list[_Candidate]]
) -> _Candidates:
    """Look again for models of goals that were missed, from the one without a target less its shifts between groups.

    The way from that model may end among large shifts, where no gap can fall without another's rising, though a model
    without any shift meets the goal.
    """
    missed = [j for j, one in enumerate(found.goals) if one.run.status is mm.Status.OUT_OF_REACH]
    model, shifts = judge.target.model_for(judge.train), judge.target.shifts
    if not (missed and shifts and isinstance(model, mm.Linear)):
        return found
    start = found.free.run.x.copy()
    start[model.dimension - shifts : model.dimension] = 0.0
    return _again(found, missed, goals, solve, start)


def _again(
    found: _Candidates, missed: list[int], goals: Any, solve: Callable[[Any, Any], list[_Candidate]], start: Any
) -> _Candidates:
    """Train the models of some goals once more, from another start; of both the fairer is kept."""
    kept = list(found.goals)
    several = solve(goals[missed], start)
    for j, one in zip(missed, several, strict=True):
        kept[j] = min(kept[j], one, key=lambda each: each.gap)
    return replace(found, goals=kept, interrupted=any(one.run.status is mm.Status.INTERRUPTED for one in several))


class _Watch:
    """A callback that keeps, of the models that a solve passes, the ones of the best AUC on held-out rows.

    Of the runs of several goals a model counts from where its training gap is within the goal.
    """

    def __init__(self, judge: _Judge, goals: Any) -> None:
        self.judge, self.goals = judge, np.asarray(goals)
        self._seen: list[tuple[float, Any]] = [(-np.inf, None)] * len(self.goals)

    def __call__(self, progress: mm.Progress) -> None:
        """Look at the models of all runs."""
        judge, rows = self.judge, self.judge.validation
        model = judge.target.model_for(judge.train)
        for run, x in enumerate(np.asarray(progress.outcome.x, dtype=np.float64)):
            parameters = x[: model.dimension]
            if rows is None or is_constant(scores := model.predict(parameters, rows.features)):
                continue
            area = _auc(scores, rows.label > 0, rows.label < 0, judge.validation_weight)
            if area > self._seen[run][0] and self._fair(parameters, self.goals[run]):
                self._seen[run] = area, x.copy()

    def _fair(self, parameters: Any, goal: float) -> bool:
        judge = self.judge
        model, metric = judge.target.model_for(judge.train), judge.target.metric
        if goal >= NO_TARGET:
            return True
        gap = measured_model(model, parameters, judge.train, metric, judge.row_weight)[0].value
        return bool(gap <= abs(goal) + _MARGIN)

    def best(self, solution: mm.Solution, run: int) -> mm.Solution:
        """Return a solution with the best model of its run, where there was any; an earlier one is not stationary."""
        x = self._seen[run][1]
        if x is None or np.array_equal(x, solution.x):
            return solution
        told = (
            "Of the models that training passed this is the best on held-out rows; what the solver says is of the last."
        )
        status = mm.Status.BUDGET if solution.status is mm.Status.SOLVED else solution.status
        return replace(solution, x=x, status=status, reason=f"{solution.reason} {told}")


def _auc(scores: Any, first: Any, second: Any, weight: Any) -> float:
    """Return the AUC of one subset of rows (n,) of booleans against another, weighted where rows have a weight."""
    sides = np.flatnonzero(first), np.flatnonzero(second)
    weights = None if weight is None else (weight[sides[0]], weight[sides[1]])
    return float(metrics.auc(scores[sides[0]], scores[sides[1]], weights=weights))


def _chosen(solved: _Candidates, judge: _Judge) -> FairFit:
    """Choose the loosest training goal whose model meets the target on the data that it is about.

    With early stopping it is, of the goals whose models meet the target there, the one of the best AUC there.
    """
    target, gap, held_out = judge.target, judge.target.max_gap, judge.validation is not None
    free, runs = solved.free, solved.goals
    measured = [judge.measured(one.run) if held_out else one.on_train for one in runs]
    without = judge.measured(free.run) if held_out else free.on_train
    reached = [judge.reached(found) for found in measured]
    met = [j for j, value in enumerate(reached) if value <= gap]
    best = met[0] if met else int(np.argmin(reached))
    if met and judge.early:
        same_side = [j for j in met if judge.goals[j] >= 0] or met
        best = max(same_side, key=lambda j: measured[j][1].value)
    chosen, found, goal = runs[best], measured[best], runs[best].goal
    if judge.reached(without) <= gap and without[1].value >= found[1].value:
        chosen, found, goal = free, without, gap
    # Where all targets are about the training data, a model for another one may be better, and meet this one too; or
    # be the fairest that is known where none meets it.
    for other in () if held_out else solved.others:
        least, better = judge.reached(found), other.area > found[1].value + _BETTER
        if gap < other.gap < least or (other.gap <= gap and (better or least > gap)):
            chosen, found, goal = other, other.on_train, other.goal
    late = any(timed_out(one.run) for one in (*runs, free))
    over = f"The time limit of {target.time_limit} s was reached."
    # Solves share the limit, and each names what was left for it.
    if timed_out(chosen.run) and chosen.run.status is mm.Status.BUDGET:
        chosen = replace(chosen, run=replace(chosen.run, reason=over))
    cut = target.iterations is not None and used_up(chosen.run)  # by the user; as many steps as by default are a search
    turns = goal >= 0 and judge.turns(found)
    if turns:
        chosen = judge.turned(chosen)
        found = judge.measured(chosen.run) if held_out else chosen.on_train
    status, reason = chosen.run.status, chosen.run.reason
    if judge.reached(found) > gap:
        stopped = solved.interrupted or status is mm.Status.INTERRUPTED
        unmet = mm.Status.UNFINISHED if late or cut else mm.Status.OUT_OF_REACH
        status = mm.Status.INTERRUPTED if stopped else unmet
        ended = over if late else "The outer steps that were asked for were used up." if cut else ""
        reason = f"{ended} {judge.shortfall(found)}".lstrip()
    elif late and judge.constant(chosen.run):
        status, reason = mm.Status.UNFINISHED, f"{over} No model was found yet that ranks rows."
    elif status in _TRAINING_GOAL_MISSED:  # and what was asked for is met all the same
        status = mm.Status.BUDGET
        reason = f"The gap meets the target {gap:g}, but in training it did not come to the goal {goal:.4g}."
    if turns and reason != chosen.run.reason:
        reason = f"{reason} {_TURNED}"
    # What a target costs is counted from the best model that is known, also where that was found with a target.
    known = max(solved.every, key=judge.area)
    if held_out and judge.area(known) <= judge.area(free) + _BETTER:
        known = free
    unconstrained = judge.measured(known.run) if held_out else known.on_train
    return FairFit(
        parameters=judge.parameters(chosen.run),
        free_parameters=judge.parameters(known.run),
        model=target.model_for(judge.train),
        status=status,
        reason=f"{reason} {solved.note}".rstrip(),
        max_gap=gap,
        target=goal,
        train_gap=chosen.on_train[0],
        train_auc=chosen.on_train[1],
        validation_gap=found[0] if held_out else None,
        validation_auc=found[1] if held_out else None,
        unconstrained_auc=unconstrained[1],
        unconstrained_gap=unconstrained[0],
        surrogate={"objective": float(chosen.run.objective), "gap": chosen.smoothed},
        solution=chosen.run,
    )

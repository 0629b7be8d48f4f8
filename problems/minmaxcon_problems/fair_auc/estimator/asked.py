"""A request to the estimator: its parameters, checked, as a target, a bound of the surrogate and a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import choice, flag, number, positive, whole
from minmaxcon_problems.fair_auc.bounds import resolved_bound
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, MetricSet, resolve_metrics
from minmaxcon_problems.fair_auc.target.problem import NO_TARGET, Target

from .groups import checked_use_group
from .inputs import checked_against

__all__ = ["Asked", "asked_of", "model_of", "signs_of", "unbound"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Asked:
    r"""A target, or a bound of the surrogate in its place.

    With ``kappa`` the bound is :math:`1 + \kappa`, and ``target`` is all else that is asked, with a gap that bounds
    nothing; ``solver`` is for kappa, by default what suits the model. ``gaps`` are the limits of a path, one or more.
    """

    target: Target
    gaps: tuple[float, ...]
    kappa: float | None = None
    solver: mm.Solver | None = None


_CHOICES = {
    "method": ("following", "bounds"),
    "demand": ("value", "upper", "new_rows"),
    "unknown": ("refuse", "own_group", "drop"),
    "calibration": ("all", "by_group"),
}


def asked_of(estimator: Any, seed: int, held_out: bool = False, *, rows_at_hand: bool = True) -> Asked:
    """Return what an estimator's parameters, as the user gave them, ask for, checked.

    ``held_out`` says that rows to judge by are given, ``rows_at_hand`` that they can be: not to ``partial_fit``. Raises
    InvalidInput or UnknownName: the parameter is named, with its value and the remedy.
    """
    for name, known in _CHOICES.items():
        choice(name, getattr(estimator, name), known)
    flag("standardize", estimator.standardize)
    kappa, gaps = _bound_of(estimator)
    held_out = held_out or estimator.validation_fraction is not None
    _check_demand(estimator, kappa, held_out)
    _check_least(estimator, rows_at_hand)
    checked_against(estimator.against, estimator.protected)
    several = isinstance(resolve_metrics(estimator.metric), MetricSet)
    if several and (kappa is not None or estimator.method != "following"):
        remedy = 'several metrics are bound with max_gap and method "following" only; give one metric.'
        raise mm.InvalidInput("metric", estimator.metric, remedy)
    if kappa is not None and estimator.method != "following":
        raise mm.InvalidInput("method", estimator.method, "is a way to reach max_gap; leave it out with kappa.")
    if kappa is None and estimator.solver is not None:
        raise mm.InvalidInput("solver", estimator.solver, "is used with kappa only: give kappa, or leave it out.")
    _check_alpha(estimator, kappa)
    if estimator.monotonic_cst is not None and (kappa is not None or estimator.method != "following"):
        remedy = 'acts with max_gap and method "following" only; leave it out.'
        raise mm.InvalidInput("monotonic_cst", estimator.monotonic_cst, remedy)
    if estimator.max_iter is not None:
        whole("max_iter", estimator.max_iter)
        if kappa is not None or estimator.method != "following":
            remedy = 'acts with max_gap and method "following" only; leave it out, and give a time_limit.'
            raise mm.InvalidInput("max_iter", estimator.max_iter, remedy)
    if kappa is not None and estimator.objective is not None:
        raise mm.InvalidInput("objective", estimator.objective, "needs max_gap; leave it out.")
    target = Target(
        metric=estimator.metric,
        max_gap=gaps[0],
        objective="auc" if estimator.objective is None else estimator.objective,
        radius=estimator.radius,
        method=estimator.method,
        demand=estimator.demand,
        iterations=estimator.max_iter,
        early_stopping=_early_stopping(estimator, kappa, held_out, rows_at_hand),
        time_limit=estimator.time_limit,
        seed=seed,
    )
    if estimator.score_bound is not None:
        positive("score_bound", estimator.score_bound)
    share, kept = estimator.validation_fraction, estimator.max_rows_per_cell
    if share is not None:
        number("validation_fraction", share, "must lie strictly between 0 and 1, or be None.", above=0.0, below=1.0)
    if not isinstance(kept, int | np.integer):  # it is used as it stands, and sizes arrays
        raise mm.InvalidInput("max_rows_per_cell", kept, "must be a whole number of at least 2.")
    whole("max_rows_per_cell", kept, 2)
    target = target if kappa is None else unbound(target)
    return Asked(target=target, gaps=gaps, kappa=kappa, solver=estimator.solver)


def _check_demand(estimator: Any, kappa: float | None, held_out: bool) -> None:
    early = isinstance(estimator.early_stopping, bool | np.bool_) and bool(estimator.early_stopping)
    if early and estimator.demand == "new_rows" and not _is_linear(estimator.model):
        remedy = 'chooses by held-out rows, and demand="new_rows" leaves rows out by itself: leave one of the two out.'
        raise mm.InvalidInput("early_stopping", True, remedy)
    if estimator.demand == "upper" and (kappa is not None or not held_out):
        remedy = "is about the interval on held-out rows under max_gap: give validation_fraction, and no kappa."
        raise mm.InvalidInput("demand", "upper", remedy)
    if estimator.demand == "new_rows" and (kappa is not None or held_out or estimator.method != "following"):
        remedy = 'leaves rows out by itself, with max_gap and method "following": leave out kappa and held-out rows.'
        raise mm.InvalidInput("demand", "new_rows", remedy)


def _check_least(estimator: Any, rows_at_hand: bool) -> None:
    least = estimator.min_rows_per_cell
    if least is None:
        return
    whole("min_rows_per_cell", least)
    if not rows_at_hand:
        raise mm.InvalidInput(
            "min_rows_per_cell", least, "is for rows at hand, of which all groups are known: use fit."
        )
    if checked_use_group(estimator.use_group):
        remedy = "leaves groups out, and use_group gives each one a shift: leave one of the two out."
        raise mm.InvalidInput("min_rows_per_cell", least, remedy)


def _bound_of(estimator: Any) -> tuple[float | None, tuple[float, ...]]:
    """Return kappa and the limits of a path, which bind nothing with kappa; and check what is about the group."""
    listed = [estimator.max_gap]
    if isinstance(estimator.max_gap, list | tuple | np.ndarray):
        given = np.asarray(estimator.max_gap)
        if given.ndim != 1 or not given.size or given.dtype.kind not in "iuf":
            raise mm.InvalidInput("max_gap", estimator.max_gap, "must be a number between 0 and 1, or a list of them.")
        listed = list(given.tolist())
    found = [resolved_bound(estimator.kappa, gap, default="max_gap", single=True) for gap in listed]
    if estimator.calibration == "by_group" and not checked_use_group(estimator.use_group):
        raise mm.InvalidInput("calibration", "by_group", "reads the group: it needs use_group.")
    return found[0][0], tuple(NO_TARGET if gap is None else gap for _, gap in found)


def _early_stopping(estimator: Any, kappa: float | None, held_out: bool, rows_at_hand: bool) -> bool:
    asked, several = estimator.early_stopping, whole("n_init", estimator.n_init)
    if not isinstance(asked, bool | np.bool_):
        raise mm.InvalidInput("early_stopping", asked, "must be True or False.")
    for name, value, used in (("early_stopping", asked, bool(asked)), ("n_init", several, several > 1)):
        if used and _is_linear(estimator.model):
            raise mm.InvalidInput(name, value, "is for networks; a linear model has one optimum: leave it out.")
        if used and (kappa is not None or estimator.method != "following"):
            raise mm.InvalidInput(name, value, 'acts with max_gap and method "following" only; leave it out.')
    if asked and not held_out:
        remedy = "looks at held-out rows: give validation_fraction" + (", or X_val to fit." if rows_at_hand else ".")
        raise mm.InvalidInput("early_stopping", True, remedy)
    if several > 1 and estimator.demand == "new_rows":
        raise mm.InvalidInput("n_init", several, 'makes one fit a start, and demand="new_rows" many: leave one out.')
    return bool(asked)


def _is_linear(model: Any) -> bool:
    return isinstance(model, mm.Linear) or (isinstance(model, str) and model == "linear")


def _check_alpha(estimator: Any, kappa: float | None) -> None:
    alpha = estimator.alpha
    if kappa is not None and alpha is not None:
        raise mm.InvalidInput("alpha", alpha, "is used with max_gap only; leave it out with kappa.")
    if alpha is not None and estimator.method != "following":
        raise mm.InvalidInput("alpha", alpha, 'needs method "following"; leave it out.')
    if alpha is not None:
        number("alpha", alpha, "must be a number of at least 0; None chooses it.", least=0.0)


def signs_of(monotonic_cst: Any, names: Sequence[str], *, named: bool, use_group: str) -> Any:
    """Return the signs (d,) that coefficients of features with these names are to have, None where any will do.

    ``named`` says whether the names are the user's own. Raises InvalidInput for what is no sign, or where each group
    has coefficients of its own.
    """
    if monotonic_cst is None:
        return None
    if use_group == "coefficients":
        remedy = 'needs one coefficient a feature: use use_group="shift", or leave it out.'
        raise mm.InvalidInput("monotonic_cst", monotonic_cst, remedy)
    given: Any = monotonic_cst
    if hasattr(monotonic_cst, "index") and hasattr(
        monotonic_cst, "items"
    ):  # a series is read by its index, not by place
        monotonic_cst = dict(monotonic_cst.items())
    if isinstance(monotonic_cst, Mapping):
        if not named:
            remedy = "names features, and X has no names of columns: give a data frame, or one number for each feature."
            raise mm.InvalidInput("monotonic_cst", monotonic_cst, remedy)
        for name in monotonic_cst:
            if name not in names:
                raise mm.UnknownName("monotonic_cst", str(name), names)
        given = [monotonic_cst.get(name, 0) for name in names]
    signs = np.asarray(given)
    answers = any(isinstance(sign, bool | np.bool_) for sign in np.ravel(np.asarray(given, dtype=object)))
    if answers or signs.shape != (len(names),) or signs.dtype.kind not in "iuf" or not np.isin(signs, (-1, 0, 1)).all():
        need = f"must give 1 (rising), -1 (falling) or 0 (either) for each of {len(names)} features, or some by name."
        raise mm.InvalidInput("monotonic_cst", monotonic_cst, need)
    return signs.astype(np.int8) if signs.any() else None


def unbound(target: Target, metric: FairnessMetric | None = None) -> Target:
    """Return what asks for the same model without a target, and by another metric where one is given."""
    return replace(
        target,
        metric=target.metric if metric is None else metric,
        max_gap=NO_TARGET,
        method="following",
        demand="value",
    )


def model_of(model: Any, features: int, *, score_bound: float | None, seed: int) -> mm.Model:
    """Return the scoring model that the user means: a name, a Model, a module, or a callable that makes one.

    A callable is called with the number of features, under the seed, which leaves torch's own state alone;
    ``score_bound`` is an upper bound on the absolute scores of a module, 100 by default. Raises InvalidInput for
    anything else, and for a bound beside what is no module.
    """
    if score_bound is not None and isinstance(model, str | mm.Model):
        raise mm.InvalidInput("score_bound", score_bound, "is for a torch.nn.Module as model; leave it out.")
    bound = 100.0 if score_bound is None else score_bound
    if isinstance(model, mm.Model):
        return model
    if isinstance(model, str):
        named: Mapping[str, Callable[[int], mm.Model]] = {"linear": mm.Linear, "mlp": mm.mlp}
        if model not in named:
            raise mm.UnknownName("model", model, named)
        return named[model](features)
    if not isinstance(model, type) and hasattr(model, "named_parameters"):
        return mm.TorchModule(model, bound)
    if not callable(model):
        raise mm.InvalidInput(
            "model",
            model,
            'use "linear", "mlp", a Model, or a function of the number of features that returns a module.',
        )
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = model(features)
    if not (isinstance(made, mm.Model) or hasattr(made, "named_parameters")):
        kind = type(made).__name__
        raise mm.InvalidInput(
            "model", model, f"returned an object of type {kind} for {features} features, not a torch.nn.Module."
        )
    return made if isinstance(made, mm.Model) else mm.TorchModule(made, bound)

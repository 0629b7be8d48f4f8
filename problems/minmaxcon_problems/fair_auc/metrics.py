r"""The fairness metrics of the paper: four subsets of the rows each, and the true gap of their AUCs.

A metric is :math:`|AUC(G_1, G_1') - AUC(G_2, G_2')|` for subsets given by label :math:`\zeta` and group :math:`\gamma`
(Definition 2 and appendix A of Yao, Lin and Yang, AISTATS 2023, arXiv:2212.12603). Where :math:`G_2 = G_2'` is
everyone, the second AUC is one half, by half credit for ties.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from minmaxcon.errors import DataError, InvalidInput, UnknownName
from minmaxcon.metrics import AUCEstimate, auc_gap, auc_gap_with_interval

__all__ = [
    "METRICS",
    "UNCONSTRAINED",
    "FairnessMetric",
    "MetricSet",
    "PredicateSubset",
    "Subset",
    "SubsetLike",
    "resolve_metric",
    "resolve_metrics",
    "single_metric",
    "subset_from",
    "true_gap",
    "true_gap_with_interval",
]

Mask = NDArray[np.bool_]
Sign = Literal[-1, 1] | None


class SubsetLike(Protocol):
    """Whatever selects rows by label and group; ``str`` of it stands in messages."""

    def mask(self, label: NDArray[Any], group: NDArray[Any]) -> Mask:
        """Return which of the n rows belong, a boolean array (n,)."""


@dataclass(frozen=True, slots=True)
class Subset:
    """The rows with a given label, a given group, both or neither.

    Attributes
    ----------
    label : +1, -1 or None
        Positive, negative, or either.
    group : +1, -1 or None
        Protected, unprotected, or either.

    Raises
    ------
    InvalidInput
        Another value.

    Examples
    --------
    >>> str(Subset(label=1, group=-1)), str(Subset())
    ('positive & unprotected', 'everyone')
    """

    label: Sign = None
    group: Sign = None

    def __post_init__(self) -> None:
        for argument in ("label", "group"):
            sign = getattr(self, argument)
            if sign is not None and not (isinstance(sign, int | np.integer) and sign in (-1, 1)):
                raise InvalidInput(argument, getattr(self, argument), "must be 1, -1 or None (either).")

    def mask(self, label: NDArray[Any], group: NDArray[Any]) -> Mask:
        """Return which of the n rows belong, a boolean array (n,)."""
        inside = np.ones(len(label), dtype=np.bool_)
        if self.label is not None:
            inside &= label == self.label
        if self.group is not None:
            inside &= group == self.group
        return inside

    def __str__(self) -> str:
        label = {1: "positive", -1: "negative", None: ""}[self.label]
        group = {1: "protected", -1: "unprotected", None: ""}[self.group]
        return " & ".join(filter(None, (label, group))) or "everyone"


@dataclass(frozen=True, slots=True)
class PredicateSubset:
    """The rows that ``function(label, group)`` selects: arrays (n,) of -1 and +1 to a boolean array (n,)."""

    function: Callable[[NDArray[Any], NDArray[Any]], Any]

    def mask(self, label: NDArray[Any], group: NDArray[Any]) -> Mask:
        """Return which of the n rows belong, (n,), or raise InvalidInput if the function returned something else."""
        inside = np.asarray(self.function(label, group))
        if inside.dtype != np.bool_ or inside.shape != label.shape:
            returned = f"{inside.dtype} of shape {inside.shape}"
            raise InvalidInput(str(self), returned, f"must return a boolean array of shape {label.shape}.")
        return inside

    def __str__(self) -> str:
        return str(getattr(self.function, "__name__", "function"))


def subset_from(value: Any) -> SubsetLike:
    """Return the subset that a user means; raises InvalidInput for what is none of these.

    An object with a method ``mask``, a function ``f(label, group)``, or a pair (label, group) of 1, -1 or None.
    """
    if hasattr(value, "mask"):
        subset: SubsetLike = value
        return subset
    if callable(value):
        return PredicateSubset(value)
    if isinstance(value, tuple) and len(value) == 2:
        return Subset(*value)
    raise InvalidInput("metric", value, "a subset is a Subset, a pair (label, group) or a function f(label, group).")


SUBSET_NAMES = ("G1", "G1'", "G2", "G2'")


Subsets = tuple[SubsetLike, SubsetLike, SubsetLike, SubsetLike]


@dataclass(frozen=True, slots=True)
class FairnessMetric:
    r"""Four subsets whose two AUCs should agree: :math:`|AUC(G_1, G_1') - AUC(G_2, G_2')|`.

    Attributes
    ----------
    name : str
        Name in the table, or one of the caller's own.
    subsets : four subsets
        :math:`G_1, G_1', G_2, G_2'`.
    description : str
        What a small value means, one sentence.
    favours : pair of str
        What a positive and a negative signed gap say, of ``{protected}`` and ``{unprotected}``; empty where nothing
        more can be said than the two AUCs.

    Examples
    --------
    >>> from minmaxcon_problems.fair_auc import resolve_metric
    >>> metric = resolve_metric("inter_group")
    >>> metric.name, len(metric.subsets)
    ('inter_group', 4)
    """

    name: str
    subsets: Subsets
    description: str = ""
    favours: tuple[str, str] = ("", "")

    @property
    def members(self) -> tuple[FairnessMetric, ...]:
        """The metric itself: what is bounded where one metric is asked for."""
        return (self,)

    def masks(self, label: Any, group: Any) -> Mask:
        """Return which rows belong to G1, G1', G2 and G2'.

        Parameters
        ----------
        label, group : array (n,)
            -1 or +1 each.

        Returns
        -------
        array (n, 4) of bool
            One column per subset.

        Raises
        ------
        InvalidInput
            Values other than -1 and +1, or lengths that differ.
        """
        label, group = _signs("label", label), _signs("group", group)
        if label.shape != group.shape:
            raise InvalidInput("group", f"shape {group.shape}", f"must have the shape of label, {label.shape}.")
        return np.stack([subset.mask(label, group) for subset in self.subsets], axis=1)

    def masks_between(self, label: Any, signs: Any) -> Mask:
        """Return :meth:`masks` (n, 4) where signs (n,) of 0 mark rows of neither group, which are in no subset."""
        label, inside = np.asarray(label), np.asarray(signs) != 0
        if inside.all():
            return self.masks(label, signs)
        masks = np.zeros((len(label), 4), dtype=np.bool_)
        masks[inside] = self.masks(label[inside], np.asarray(signs)[inside])
        return masks

    def require_members(self, masks: Mask, source: str) -> None:
        """Refuse data in which one of the subsets has no row.

        Parameters
        ----------
        masks : array (n, 4) of bool
            From :meth:`masks`.
        source : str
            The data set, as the message names it.

        Raises
        ------
        DataError
            The empty subset is named, with the sizes of all four.
        """
        sizes = masks.sum(axis=0)
        if not sizes.all():
            listed = ", ".join(
                f"{name} = {subset}: {size:,}"
                for name, subset, size in zip(SUBSET_NAMES, self.subsets, sizes, strict=True)
            )
            subset = self.subsets[int(np.argmin(sizes))]
            raise DataError(
                source,
                f"no row is in the subset {subset} of the metric {self.name} ({listed}); add such rows.",
            )

    def masks_of(self, label: Any, group: Any, source: str) -> Mask:
        """Return :meth:`masks_between` (n, 4) of rows that have members of every subset and of both classes.

        Raises
        ------
        DataError
            One of the subsets, or of the classes, is empty.
        """
        masks = self.masks_between(label, group)
        self.require_members(masks, source)
        if len(np.unique(label)) < 2:
            raise DataError(source, "has labels of one class only; both are needed.")
        return masks

    def __str__(self) -> str:
        first, first_other, second, second_other = self.subsets
        return f"{self.name}: |AUC({first}; {first_other}) - AUC({second}; {second_other})|"


@dataclass(frozen=True, slots=True)
class MetricSet:
    """Several metrics, the largest gap of which counts."""

    members: tuple[FairnessMetric, ...]

    @property
    def name(self) -> str:
        """The names of the metrics."""
        return " and ".join(metric.name for metric in self.members)

    def __str__(self) -> str:
        return "; ".join(map(str, self.members))


def single_metric(metric: FairnessMetric | MetricSet) -> FairnessMetric:
    """Return the metric where there is one.

    Raises InvalidInput where there are several.
    """
    if isinstance(metric, MetricSet):
        raise InvalidInput("metric", metric.name, 'several metrics are bound with max_gap and method "following" only.')
    return metric


def resolve_metrics(metric: Any) -> FairnessMetric | MetricSet:
    """Return one metric, as :func:`resolve_metric` does, or several that are given as a list of names and metrics."""
    if isinstance(metric, MetricSet):
        return metric
    if isinstance(metric, list | tuple) and metric and all(isinstance(one, str | FairnessMetric) for one in metric):
        members = tuple(resolve_metric(one) for one in metric)
        return members[0] if len(members) == 1 else MetricSet(members)
    return resolve_metric(metric)


def _signs(argument: str, values: Any) -> NDArray[Any]:
    signs = np.asarray(values)
    if np.ma.is_masked(values) or signs.dtype.kind == "c":
        raise InvalidInput(argument, values, "must be real numbers, none of them masked; leave such rows out.")
    valid = np.isin(signs, (-1, 1))
    if signs.ndim != 1:
        raise InvalidInput(argument, f"shape {signs.shape}", "must have shape (n,).")
    if not valid.all():
        row = int(np.argmin(valid))
        raise InvalidInput(
            argument, signs[row : row + 1].tolist()[0], f"row {row + 1} must be -1 or +1; map the two values first."
        )
    return signs


_EVERYONE = Subset()
_POSITIVE, _NEGATIVE = Subset(label=1), Subset(label=-1)
_PROTECTED, _UNPROTECTED = Subset(group=1), Subset(group=-1)
_POSITIVE_PROTECTED, _NEGATIVE_PROTECTED = Subset(1, 1), Subset(-1, 1)
_POSITIVE_UNPROTECTED, _NEGATIVE_UNPROTECTED = Subset(1, -1), Subset(-1, -1)

_FAVOURED = ("{protected} is favoured", "{unprotected} is favoured")

METRICS: dict[str, FairnessMetric] = {
    metric.name: metric
    for metric in (
        FairnessMetric(
            "group",
            (_PROTECTED, _UNPROTECTED, _EVERYONE, _EVERYONE),
            "The score says little about the group: AUC for predicting it near one half.",
            _FAVOURED,
        ),
        FairnessMetric(
            "inter_group",
            (_POSITIVE_PROTECTED, _NEGATIVE_UNPROTECTED, _POSITIVE_UNPROTECTED, _NEGATIVE_PROTECTED),
            "A positive is ranked above a negative of the other group equally often, whichever its group.",
            _FAVOURED,
        ),
        FairnessMetric(
            "intra_group",
            (_POSITIVE_PROTECTED, _NEGATIVE_PROTECTED, _POSITIVE_UNPROTECTED, _NEGATIVE_UNPROTECTED),
            "The AUC for the label is the same within either group.",
            ("{protected} is ranked more accurately", "{unprotected} is ranked more accurately"),
        ),
        FairnessMetric(
            "positive_equality_gap",
            (_POSITIVE_PROTECTED, _POSITIVE, _EVERYONE, _EVERYONE),
            "Protected positives are ranked among all positives as any other.",
            _FAVOURED,
        ),
        FairnessMetric(
            "negative_equality_gap",
            (_NEGATIVE_PROTECTED, _NEGATIVE, _EVERYONE, _EVERYONE),
            "Protected negatives are ranked among all negatives as any other.",
            _FAVOURED,
        ),
        FairnessMetric(
            "bpsn_bnsp",
            (_POSITIVE, _NEGATIVE_PROTECTED, _POSITIVE_PROTECTED, _NEGATIVE),
            "Protected negatives against all positives, and protected positives against all negatives.",
            _FAVOURED[::-1],
        ),
    )
}
"""The metrics of the paper's appendix A, examples 1 to 5 in this order (two of 4), by name."""


UNCONSTRAINED = FairnessMetric(
    "none", (_POSITIVE, _NEGATIVE, _POSITIVE, _NEGATIVE), "An AUC against itself: no constraint at all."
)
"""The metric of a model without constraint; its gap is 0 whatever the scores."""


def resolve_metric(metric: str | FairnessMetric | Sequence[Any]) -> FairnessMetric:
    """Return a metric by name, or one made of four subsets.

    Parameters
    ----------
    metric : str, FairnessMetric or four subsets
        A name of ``METRICS``; or G1, G1', G2, G2', each a :class:`Subset`, a pair (label, group) of 1, -1 or None, a
        function ``f(label, group)`` that returns a boolean mask, or an object with such a method ``mask``.

    Raises
    ------
    UnknownName
        No metric has that name; the nearest is suggested.
    InvalidInput
        Neither a name nor four subsets, or one of them cannot be understood.
    """
    if isinstance(metric, FairnessMetric):
        return metric
    if isinstance(metric, str):
        if metric not in METRICS:
            raise UnknownName("metric", metric, METRICS)
        return METRICS[metric]
    try:
        given = list(metric)
    except TypeError:
        given = []
    if len(given) != 4:
        remedy = f"give one of the names {', '.join(METRICS)}, or the four subsets G1, G1', G2, G2'."
        raise InvalidInput("metric", metric, remedy)
    first, first_other, second, second_other = (subset_from(value) for value in given)
    return FairnessMetric("custom", (first, first_other, second, second_other), "Four subsets of the caller's own.")


def true_gap(
    scores: Any, label: Any, group: Any, metric: str | FairnessMetric | Sequence[Any], *, row_weight: Any = None
) -> Any:
    r"""Return :math:`|AUC(G_1, G_1') - AUC(G_2, G_2')|` of the scores themselves, not of a surrogate.

    Parameters
    ----------
    scores : array (n,) or (R, n)
        Scores of the rows, in any unit.
    label, group : array (n,)
        -1 or +1 each.
    metric : str, FairnessMetric or four subsets
        As in :func:`resolve_metric`.
    row_weight : array (n,), optional
        Positive weights of the rows.

    Returns
    -------
    float or array (R,)
        In [0, 1]; NaN where a subset is empty.

    Raises
    ------
    InvalidInput
        Scores that are not finite, weights that are not positive, signs other than -1 and +1, lengths that differ, or
        no such metric.
    """
    return auc_gap(scores, *_pairs(scores, label, group, metric), row_weight=row_weight)


def true_gap_with_interval(
    scores: Any,
    label: Any,
    group: Any,
    metric: str | FairnessMetric | Sequence[Any],
    confidence: float = 0.95,
    *,
    row_weight: Any = None,
) -> AUCEstimate:
    """Return the true gap with its interval of the given confidence, in (0, 1), and the four subsets' sizes.

    Arguments and errors are those of :func:`true_gap`; see :func:`minmaxcon.metrics.auc_gap_with_interval`.
    """
    pairs = _pairs(scores, label, group, metric)
    return auc_gap_with_interval(scores, *pairs, confidence, row_weight=row_weight)


def _pairs(scores: Any, label: Any, group: Any, metric: Any) -> tuple[tuple[Mask, Mask], tuple[Mask, Mask]]:
    """Return the masks of both pairs; InvalidInput where there are other rows than scores."""
    masks = resolve_metric(metric).masks(label, group)
    try:
        shape = np.shape(scores)
    except ValueError:  # lists of several lengths, which are refused where they are read
        shape = ()
    if shape and shape[-1] != len(masks):
        raise InvalidInput("scores", f"shape {shape}", f"there must be {len(masks)}, one for each label.")
    return (masks[:, 0], masks[:, 1]), (masks[:, 2], masks[:, 3])

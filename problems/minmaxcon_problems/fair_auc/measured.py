r"""Results of measuring scores: AUC, signed gaps in words of the metric, rows of each cell; and of comparing two.

Each group is compared with the rest of the rows, or every two groups on their rows alone, and the gap of a score is the
largest one. With m comparisons the interval of the largest gap is made of the intervals of all, each at the confidence
:math:`1 - (1 - c)/m` where c is asked for, so that it covers whichever is the largest.

Two of several groups can differ by more than either does from the rest, which the worst pair tells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.errors import InvalidInput
from minmaxcon.metrics import AUCEstimate, AUCStatistic

from .labelled import LabelledData
from .metrics import SUBSET_NAMES, FairnessMetric, MetricSet, Subset, SubsetLike

__all__ = [
    "ROUNDING",
    "Cell",
    "Compared",
    "GroupGap",
    "GroupSigns",
    "Measured",
    "compared",
    "comparisons",
    "each_other",
    "gap_and_area",
    "is_constant",
    "measured",
    "smallest_subset",
    "worst_pair",
]

ROUNDING = 1e-13
"""The share of the largest score by which scores may differ from rounding."""

_FEW = 10
"""Rows of a cell below which a result says that intervals are wide."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupSigns:
    """A group and what it is compared with: its value, what that is called, and the signs (n,), +1 in the group.

    They are -1 in the rest; or, in a ``pair``, -1 in the other group and 0 in neither. ``bound`` is False for a
    comparison that does not count in the largest gap.
    """

    value: Any
    rest: Any
    signs: Any
    bound: bool = True
    pair: bool = False

    @property
    def sides(self) -> tuple[Any, ...]:
        """The groups that are compared: one where it is compared with the rest."""
        return (self.value, self.rest) if self.pair else (self.value,)


def comparisons(rows: LabelledData, metric: FairnessMetric | MetricSet) -> list[GroupSigns]:
    """Return what a metric compares in labelled rows: each group with the rest, or every two groups."""
    groups = [GroupSigns(*group) for group in rows.each_group]
    return each_other(groups, metric) if rows.each_other else groups


def each_other(groups: Sequence[GroupSigns], metric: FairnessMetric | MetricSet) -> list[GroupSigns]:
    """Return every two of several groups, which a metric compares on the rows of the two alone.

    Where a metric tells the protected one of two groups from the other, either takes that place.
    """
    if len(groups) < 2:
        return list(groups)
    return [
        GroupSigns(
            a.value, b.value, ((a.signs > 0) * 1 - (b.signs > 0)).astype(np.int8), a.bound and b.bound, pair=True
        )
        for a, b in _every_two(groups, metric)
    ]


def _every_two(groups: Iterable[Any], metric: FairnessMetric | MetricSet) -> Iterator[tuple[Any, Any]]:
    """Yield every two groups; in either order where that is not the same to a metric."""
    alike = all(map(_either_way, metric.members))
    yield from (itertools.combinations if alike else itertools.permutations)(groups, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """How many rows have a label and belong to a group, and what they weigh.

    Examples
    --------
    >>> from minmaxcon_problems.fair_auc import measure_scores
    >>> found = measure_scores([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0], sensitive_features=list("aabb"), metric="group")
    >>> [(cell.label, cell.group, cell.rows) for cell in found.cells]
    [(1, 'b', 1), (0, 'b', 1), (1, 'a', 1), (0, 'a', 1)]
    """

    label: Any
    group: Any
    rows: int
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class GroupGap:
    """The gap of one group against the rest, or of two groups alone.

    Attributes
    ----------
    metric : str
        Name of the metric.
    group, rest : object
        The value of the sensitive features, and that of the other group, or what all others are called.
    first, second : AUCEstimate
        The AUCs that the metric compares, :math:`AUC(G_1, G_1')` and :math:`AUC(G_2, G_2')`.
    signed : AUCEstimate
        The first less the second, with the p-value of no difference.
    gap : AUCEstimate
        Its absolute value.
    favours : str
        Which side is favoured, in words of the metric.

    Examples
    --------
    >>> from minmaxcon_problems.fair_auc import measure_scores
    >>> found = measure_scores([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0], sensitive_features=list("aabb"), metric="group")
    >>> [(gap.group, gap.gap.value) for gap in found.groups]
    [('b', 0.5)]
    """

    metric: str
    group: Any
    rest: Any
    first: AUCEstimate
    second: AUCEstimate
    signed: AUCEstimate
    gap: AUCEstimate
    favours: str

    def __str__(self) -> str:
        return f"{self.metric}, {self.group!r} against {self.rest!r}: {self.signed}. {self.favours}".rstrip()


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """AUC and fairness of scores on labelled rows.

    Attributes
    ----------
    metric : FairnessMetric or MetricSet
        The subsets that are compared.
    confidence : float
        Of all intervals.
    auc : AUCEstimate
        AUC of all rows.
    gap : AUCEstimate or None
        The largest gap of a comparison; None without sensitive features.
    groups : tuple of GroupGap
        Each comparison's gap in each metric: each group's against the rest, of two groups the protected one's alone; or
        that of every two groups, where these are compared.
    left_out : tuple of object
        Groups that do not count in ``gap``, since the fit left them out for their few rows.
    worst_pair : GroupGap or None
        With more than two groups, those two whose gap is the largest where all other rows are left out: ``group``
        against ``rest``. Each group against all others, as ``groups`` and limits have it, lets a pair differ by more.
        Its intervals and its p-value allow for its being one of many. Groups that are left out are in no pair.
    pairs : bool
        Whether every two groups are compared, and not each with the rest.
    cells : tuple of Cell
        Rows of each label and group.
    positive, negative : object
        The labels.
    reasons : tuple of str
        Why a value or an interval is missing, and what the counts do not allow; empty where there is nothing to say.

    Examples
    --------
    >>> from minmaxcon_problems.fair_auc import measure_scores
    >>> found = measure_scores([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0], sensitive_features=list("aabb"), metric="group")
    >>> found.auc.value, found.gap.value
    (0.75, 0.5)
    """

    metric: FairnessMetric | MetricSet
    confidence: float
    auc: AUCEstimate
    gap: AUCEstimate | None
    groups: tuple[GroupGap, ...]
    cells: tuple[Cell, ...]
    positive: Any
    negative: Any
    reasons: tuple[str, ...]
    left_out: tuple[Any, ...] = ()
    worst_pair: GroupGap | None = None
    pairs: bool = False

    @property
    def worst(self) -> GroupGap | None:
        """The comparison with the largest gap; None without sensitive features."""
        counted = (part for part in self.groups if not {part.group, part.rest} & set(self.left_out))
        return max(counted, key=_size_of_gap, default=None)

    @property
    def signed_gap(self) -> AUCEstimate | None:
        """The signed gap of that group."""
        return None if self.worst is None else self.worst.signed

    @property
    def favours(self) -> str:
        """Which side that gap favours, in words of the metric."""
        return "" if self.worst is None else self.worst.favours

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON knows it."""
        return {
            "metric": str(self.metric),
            "confidence": self.confidence,
            "auc": self.auc.as_dict(),
            "gap": None if self.gap is None else self.gap.as_dict(),
            "groups": [_as_dict(part) for part in self.groups],
            "left_out": [_plain(group) for group in self.left_out],
            "pairs": self.pairs,
            "worst_pair": None if self.worst_pair is None else _as_dict(self.worst_pair),
            "cells": [
                {"label": _plain(c.label), "group": _plain(c.group), "rows": c.rows, "weight": c.weight}
                for c in self.cells
            ],
            "positive": _plain(self.positive),
            "negative": _plain(self.negative),
            "reasons": list(self.reasons),
        }

    def __str__(self) -> str:
        lines = [f"AUC {self.auc}"]
        if self.gap is not None:
            lines += [f"{self.metric.name} gap {self.gap}"]
            lines += [f"  {part}" for part in self.groups]
            if (pair := self.worst_pair) is not None and pair.gap.defined and not self.pairs:
                lines.append(f"  the two groups that differ most, {pair}")
            cells = ", ".join(f"{c.label!r} of {c.group!r}: {c.rows:,}" for c in self.cells)
            lines += [f"rows: {cells}"]
        return "\n".join([*lines, *self.reasons])


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Two scores on the same rows: paired differences, the first less the second.

    Attributes
    ----------
    auc : AUCEstimate
        Difference of the AUCs.
    gap : AUCEstimate or None
        Difference of the gaps, each score's largest; negative where the first one is fairer.
    signed_gaps : mapping of group to AUCEstimate
        Difference of the signed gaps of each group, or of each (group, other group) where every two are compared; by
        (metric, group), or (metric, group, other group), where there are several metrics.
    first, second : Measured
        Either score by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon_problems.fair_auc import FairAUCClassifier, load_dataset
    >>> data = load_dataset("loanapp")
    >>> fair = FairAUCClassifier("group", max_gap=0.05, random_state=0)
    >>> fair = fair.fit(data.train.features, data.train.label, sensitive_features=data.train.group)
    >>> test = data.test
    >>> found = fair.compare(np.zeros(596), test.features, test.label, sensitive_features=test.group)
    >>> found.auc.value > 0.2, found.first.auc.value > found.second.auc.value
    (True, True)
    """

    auc: AUCEstimate
    gap: AUCEstimate | None
    signed_gaps: Mapping[Any, AUCEstimate]
    first: Measured
    second: Measured

    def __str__(self) -> str:
        lines = [f"difference of AUC {self.auc}"]
        if self.gap is not None:
            lines.append(f"difference of the {self.first.metric.name} gap {self.gap}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class _Statistics:
    """The statistics behind a result: the area, and first, second and signed for each metric and group."""

    area: AUCStatistic
    groups: tuple[tuple[FairnessMetric, GroupSigns, AUCStatistic, AUCStatistic, AUCStatistic], ...]

    @classmethod
    def of(
        cls, scores: Any, label: Any, groups: Sequence[GroupSigns], metric: FairnessMetric | MetricSet, row_weight: Any
    ) -> _Statistics:
        scores = np.zeros_like(scores) if is_constant(scores) else scores
        positive = np.asarray(label) > 0
        pairs, names = [(positive, ~positive)], [("the set of positives", "the set of negatives")]
        compared = list(itertools.product(metric.members, groups))
        for one, group in compared:
            masks = one.masks_between(label, group.signs)
            called = [f"{name} ({subset})" for name, subset in zip(SUBSET_NAMES, one.subsets, strict=True)]
            pairs += [(masks[:, 0], masks[:, 1]), (masks[:, 2], masks[:, 3])]
            names += [(called[0], called[1]), (called[2], called[3])]
        area, *areas = AUCStatistic.of_pairs(scores, pairs, row_weight, names)
        found = zip(compared, areas[::2], areas[1::2], strict=True)
        return cls(area, tuple((one, group, a, b, a - b) for (one, group), a, b in found))

    @property
    def gaps(self) -> list[AUCStatistic]:
        """The gaps of the groups that count in the largest one."""
        return [abs(signed) for _, group, *_, signed in self.groups if group.bound]

    @property
    def largest(self) -> AUCStatistic | None:
        return max(self.gaps, key=_value_of, default=None)


def measured(
    scores: Any,
    label: Any,
    groups: Sequence[GroupSigns],
    metric: FairnessMetric | MetricSet,
    labels: tuple[Any, Any],
    *,
    row_weight: Any = None,
    confidence: float = 0.95,
) -> Measured:
    """Measure scores (n,) of rows with label signs (n,).

    ``labels`` are the values (negative, positive), and ``row_weight`` (n,) positive weights. Raises InvalidInput for
    scores that are not finite, weights that are not positive, or a confidence outside (0, 1).
    """
    found = _Statistics.of(scores, label, groups, metric, row_weight)
    return _result(found, scores, label, metric, labels, row_weight, confidence)


def compared(
    scores: tuple[Any, Any],
    label: Any,
    groups: Sequence[GroupSigns],
    metric: FairnessMetric | MetricSet,
    labels: tuple[Any, Any],
    *,
    row_weight: Any = None,
    confidence: float = 0.95,
) -> Compared:
    """Compare two scores, each (n,), of the same rows; other arguments and errors are those of :func:`measured`."""
    statistics = [_Statistics.of(each, label, groups, metric, row_weight) for each in scores]
    if all(map(is_constant, scores)) or _same_ranks(*scores):  # no draw of rows could tell them apart
        statistics[1] = statistics[0]
    one, other = statistics
    results = [
        _result(found, each, label, metric, labels, row_weight, confidence)
        for found, each in zip(statistics, scores, strict=True)
    ]
    gap, largest = None, one.largest
    if largest is not None:
        rival = largest if other is one else other.largest
        gap = None if rival is None else (largest - rival).estimate(confidence)
    return Compared(
        auc=(one.area - other.area).estimate(confidence),
        gap=gap,
        signed_gaps={
            _key(*([each.name] if len(metric.members) > 1 else []), *group.sides): (signed - other_signed).estimate(
                confidence
            )
            for (each, group, *_, signed), (*_, other_signed) in zip(one.groups, other.groups, strict=True)
        },
        first=results[0],
        second=results[1],
    )


def _key(*parts: Any) -> Any:
    return parts[0] if len(parts) == 1 else parts


def _result(
    found: _Statistics,
    scores: Any,
    label: Any,
    metric: FairnessMetric | MetricSet,
    labels: tuple[Any, Any],
    row_weight: Any,
    confidence: float,
) -> Measured:
    parts = tuple(_group_gap(part, labels, confidence) for part in found.groups)
    auc = found.area.estimate(confidence)
    groups = list({id(part[1]): part[1] for part in found.groups}.values())
    cells, bound = (
        _cells(np.asarray(label), groups, labels, row_weight),
        {s for g in groups if g.bound for s in g.sides},
    )
    left_out = list(dict.fromkeys(side for group in groups for side in group.sides if side not in bound))
    reasons = _reasons(auc, parts, cells, np.asarray(scores))
    if left_out:
        named = ", ".join(map(repr, left_out))
        reasons.append(f"The largest gap does not count groups that the fit left out for their few rows: {named}.")
    return Measured(
        metric=metric,
        confidence=confidence,
        auc=auc,
        gap=_largest(found, confidence),
        groups=parts,
        cells=cells,
        positive=labels[1],
        negative=labels[0],
        reasons=tuple(reasons),
        left_out=tuple(left_out),
        pairs=any(group.pair for group in groups),
        worst_pair=worst_pair(scores, label, groups, metric, labels, row_weight, confidence),
    )


def _group_gap(part: Any, labels: tuple[Any, Any], confidence: float) -> GroupGap:
    """Return the gap of a metric, a group and three statistics, as :class:`_Statistics` has them."""
    one, group, first, second, signed = part
    estimate = signed.estimate(confidence)
    return GroupGap(
        metric=one.name,
        group=group.value,
        rest=group.rest,
        first=first.estimate(confidence),
        second=second.estimate(confidence),
        signed=estimate,
        gap=abs(signed).estimate(confidence),
        favours=in_words(one, first.value, second.value, estimate, group, labels),
    )


def worst_pair(
    scores: Any,
    label: Any,
    groups: Sequence[GroupSigns],
    metric: FairnessMetric | MetricSet,
    labels: tuple[Any, Any],
    row_weight: Any = None,
    confidence: float = 0.95,
) -> GroupGap | None:
    """Return the two of several groups whose gap, on their rows alone, is the largest; None of two groups.

    Arguments and errors are those of :func:`measured`. Intervals allow for as many pairs as there are.
    """
    scores, label, bound = np.asarray(scores), np.asarray(label), [group for group in groups if group.bound]
    if not bound or (len(bound) < 2 and not bound[0].pair):  # of two groups one alone is compared with the rest
        return None
    members: dict[Any, Any] = {}
    for group in bound:
        members.setdefault(group.value, np.flatnonzero(group.signs > 0))
        if group.pair:
            members.setdefault(group.rest, np.flatnonzero(group.signs < 0))
    pairs = [(group.value, group.rest) for group in bound if group.pair]
    cases = [(one, *two) for one in metric.members for two in pairs or _every_two(members, one)]
    each = 1.0 - (1.0 - confidence) / len(cases)

    def alone(one: FairnessMetric, a: Any, b: Any) -> Any:
        """Return the statistics of two groups: made one after the other, since they hold a number for each row."""
        rows = np.concatenate([members[a], members[b]])
        order = np.argsort(rows)
        inside, signs = rows[order], np.where(order < len(members[a]), 1, -1).astype(np.int8)
        pair = GroupSigns(a, b, signs, pair=True)
        weight = None if row_weight is None else np.asarray(row_weight)[inside]
        return _Statistics.of(scores[inside], label[inside], [pair], one, weight).groups[0]

    gaps = [abs(alone(*case)[-1]).estimate(each) for case in cases]
    largest = max(range(len(cases)), key=lambda k: _value_of(gaps[k]))
    worst = _group_gap(alone(*cases[largest]), labels, each)
    p = worst.signed.p_value
    signed = replace(worst.signed, p_value=None if p is None else min(1.0, p * len(cases)))  # as the interval has it
    return replace(worst, signed=signed, gap=_simultaneous(gaps))


def _either_way(metric: FairnessMetric) -> bool:
    """Whether the gap between two groups is the same whichever is the protected one."""
    subsets = [subset for subset in metric.subsets if isinstance(subset, Subset)]
    if len(subsets) < len(metric.subsets):
        return False
    one, other, two, last = subsets
    turned = [Subset(subset.label, _TURNED[subset.group]) for subset in subsets]
    return turned in ([two, last, one, other], [other, one, last, two])


_TURNED: dict[Any, Any] = {1: -1, -1: 1, None: None}


def _largest(found: _Statistics, confidence: float) -> AUCEstimate | None:
    """Return the largest gap, with an interval that allows for its being one of several."""
    gaps = found.gaps
    if len(gaps) < 2:
        return gaps[0].estimate(confidence) if gaps else None
    return _simultaneous([gap.estimate(1.0 - (1.0 - confidence) / len(gaps)) for gap in gaps])


def _simultaneous(gaps: Sequence[AUCEstimate]) -> AUCEstimate:
    """Return the largest of several gaps, with an interval made of those of all."""
    unknown = [gap.reason for gap in gaps if gap.reason]
    largest = max(gaps, key=_value_of)
    if unknown:
        return replace(largest, lower=math.nan, upper=math.nan, reason=unknown[0])
    return replace(largest, lower=max(gap.lower for gap in gaps), upper=max(gap.upper for gap in gaps))


def _cells(label: Any, groups: Sequence[GroupSigns], labels: tuple[Any, Any], row_weight: Any) -> tuple[Cell, ...]:
    weight = np.ones(len(label)) if row_weight is None else np.asarray(row_weight, dtype=np.float64)
    members: dict[Any, Any] = {}
    for group in groups:
        members.setdefault(group.value, group.signs > 0)
        if group.pair or len(groups) == 1:
            members.setdefault(group.rest, group.signs < 0)
    rows = [(sign, value, mask & (label == sign)) for value, mask in members.items() for sign in (1, -1)]
    return tuple(
        Cell(labels[int(sign > 0)], value, int(inside.sum()), float(weight[inside].sum()))
        for sign, value, inside in rows
    )


def _reasons(auc: AUCEstimate, parts: Sequence[GroupGap], cells: Sequence[Cell], scores: Any) -> list[str]:
    found = [f"AUC: {auc.reason}."] if auc.reason else []
    found += [f"Gap of {part.group!r}: {part.signed.reason}." for part in parts if part.signed.reason]
    if is_constant(scores) and auc.defined:
        found.append("The score is the same in every row: every AUC is one half, and every gap 0.")
    few = min(cells, key=lambda cell: cell.rows, default=None)
    if few is not None and few.rows < _FEW:
        have, belong = (f"Only {few.rows} rows have", "belong") if few.rows > 1 else ("Only 1 row has", "belongs")
        told = f"{have if few.rows else 'No row has'} the label {few.label!r} and {belong} to {few.group!r}"
        found.append(f"{told}: intervals are wide, and a small gap proves little." if few.rows else f"{told}.")
    return found


def in_words(
    metric: FairnessMetric,
    first: float,
    second: float,
    signed: AUCEstimate,
    group: GroupSigns,
    labels: tuple[Any, Any],
) -> str:
    """Say which side a signed gap favours, and the two AUCs in words."""
    if math.isnan(signed.value):
        return ""
    names = {"protected": _named(group.value), "unprotected": _named(group.rest)}
    sets = [_phrase(subset, group, labels) for subset in metric.subsets]
    told = f"{sets[0]} rank above {sets[1]} in {first:.1%} of pairs"
    if metric.subsets[2] != metric.subsets[3]:
        told += f", {sets[2]} above {sets[3]} in {second:.1%}"
    if signed.value == 0:
        return f"Neither side is favoured: {told}."
    side = metric.favours[int(signed.value < 0)].format(**names)
    told = f"{side}: {told}." if side else f"{told[0].upper()}{told[1:]}."
    if not signed.lower <= 0.0 <= signed.upper:
        return told
    return f"On these rows {told[0].lower()}{told[1:]} Chance may explain it: the interval contains 0."


def _phrase(subset: SubsetLike, group: GroupSigns, labels: tuple[Any, Any]) -> str:
    if not isinstance(subset, Subset):
        return f"rows of {subset}"
    label = "" if subset.label is None else f" labelled {labels[int(subset.label > 0)]!r}"
    member = "" if subset.group is None else f" of {_named(group.value if subset.group > 0 else group.rest)}"
    return f"rows{label}{member}" if label or member else "all rows"


def _named(group: Any) -> str:
    """Return what a group is called in a sentence, where a number alone would not be known as one."""
    return repr(group) if isinstance(group, str) else f"group {group!r}"


def gap_and_area(
    scores: Any, label: Any, groups: Sequence[GroupSigns], metric: FairnessMetric | MetricSet, row_weight: Any
) -> tuple[AUCEstimate, AUCEstimate]:
    """Return the largest gap and the AUC, with 95% intervals; arguments are those of :func:`measured`."""
    found = _Statistics.of(scores, label, groups, metric, row_weight)
    gap = _largest(found, 0.95)
    if gap is None:
        raise InvalidInput("groups", groups, "there is none to compare.")
    return gap, found.area.estimate()


def is_constant(scores: Any) -> bool:
    """Whether scores (n,) are all the same, up to rounding."""
    return scores.size == 0 or float(np.ptp(scores)) <= ROUNDING * float(np.abs(scores).max())


def _same_ranks(one: Any, other: Any) -> bool:
    first, second = (np.unique(np.asarray(scores), return_inverse=True)[1] for scores in (one, other))
    return bool(np.array_equal(first, second))


def smallest_subset(
    label: Any, groups: Iterable[GroupSigns], metric: FairnessMetric | MetricSet, labels: tuple[Any, Any], copies: Any
) -> tuple[int, str]:
    """Return how many rows the smallest set has that a gap is measured on, and which these are, in words.

    Of a sample each row counts for the ``copies`` (n,) of which it is one.
    """
    sizes = [
        (round(float(size)), _phrase(subset, group, labels))
        for one, group in itertools.product(metric.members, groups)
        for size, subset in zip(copies @ one.masks_between(label, group.signs), one.subsets, strict=True)
    ]
    return min(sizes, key=lambda size: size[0])


def _size_of_gap(part: GroupGap) -> float:
    return _value_of(part.gap)


def _value_of(gap: AUCEstimate | AUCStatistic) -> float:
    return -1.0 if math.isnan(gap.value) else gap.value


def _as_dict(part: GroupGap) -> dict[str, Any]:
    return {
        "metric": part.metric,
        "group": _plain(part.group),
        "rest": _plain(part.rest),
        "favours": part.favours,
        **{name: getattr(part, name).as_dict() for name in ("first", "second", "signed", "gap")},
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value

"""The report of a fitted classifier: one HTML page for an auditor, without scripts and without a network."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minmaxcon import metrics
from minmaxcon.metrics import AUCEstimate
from minmaxcon.results import OKABE_ITO, empty_figure, png, style_axes, versions
from minmaxcon_problems.fair_auc.measured import Compared, GroupSigns, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .fitted import Fitted

__all__ = ["Evidence", "report_page", "summary_html"]

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1b1b1b; background: #fff; margin: 0 auto; max-width: 980px;
  padding: 1.5rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .6rem; border-bottom: 1px solid #ddd; padding-bottom: .2rem; }
p { max-width: 46rem; }
.verdict { border-left: 4px solid #0072B2; background: #f3f8fc; padding: .7rem 1rem; margin: 1rem 0; }
.verdict.missed { border-color: #D55E00; background: #fdf4ee; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .93rem; }
th, td { text-align: left; padding: .3rem 1.2rem .3rem 0; border-bottom: 1px solid #e6e6e6; vertical-align: top; }
td { overflow-wrap: break-word; max-width: 28rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; } figcaption { color: #555; font-size: .9rem; }
.small { color: #555; font-size: .9rem; }
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body>{body}</body>
</html>
"""

NO_BREAK = "\u00a0"
"""A space at which no line ends."""

_MOST_FEATURES = 40
_MOST_GROUPS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a report shows of some rows.

    ``scores`` (n,) are higher for the positive label, ``chance`` (n,) its probabilities, ``label`` (n,) the signs,
    ``groups`` those that are compared, ``rivals`` other models' comparisons by name, and ``path`` the limits that were
    asked for, with their models measured, where there are several.
    """

    measured: Measured
    scores: Any
    chance: Any
    label: Any
    groups: Sequence[GroupSigns]
    rivals: Mapping[str, Compared]
    path: Sequence[tuple[float, Measured]] = ()


def report_page(
    title: str,
    fitted: Fitted,
    settings: Mapping[str, Any],
    features: Sequence[tuple[str, float]],
    evidence: Evidence,
    rows_name: str,
) -> str:
    """Return the page: data, metric in words, what was asked and reached, figures, price, certificate and settings.

    ``settings`` are the estimator's parameters, ``features`` names and coefficients in raw units, for the positive
    label (none where the model is not linear), and ``rows_name`` is what the rows of the evidence are called.
    """
    fit, measured = fitted.fit, evidence.measured
    missed = "" if fit.max_gap is not None and fit.gap.value <= fit.max_gap else " missed"
    ended = f"<strong>{fit.status.name}.</strong> {_text(fit.status.value)} {_text(fit.reason)}"
    words = " ".join(metric.description for metric in measured.metric.members)
    method = measured.auc.method or "none"
    counted = f"Positive label {measured.positive!r}; intervals of {measured.confidence:.0%}: {method}."
    weighted = any(c.weight != c.rows for c in measured.cells)
    cells = [
        [str(c.label), _group(c.group), f"{c.rows:,}", *([f"{c.weight:,.6g}"] if weighted else [])]
        for c in measured.cells
    ]
    parts = [
        f"<h1>{_text(title)}</h1>",
        _small(f"Fair AUC classifier, metric {measured.metric.name}. {words}"),
        f'<div class="verdict{missed}">{ended}</div>',
        "<h2>What was asked, and what was reached</h2>",
        _reached(fitted, measured, rows_name),
        _words(measured),
        "<h2>Rows behind these numbers</h2>",
        _table(["label", "group", "rows", *(["weight"] if weighted else [])], cells),
        _small(counted),
        "<h2>How well each group is ranked</h2>",
        _figure(_roc_figure(evidence), "ROC curves of each group, with the AUC within the group."),
        "<h2>How scores are distributed</h2>",
        _figure(_score_figure(evidence), f"Log-odds of the positive label, by label and group.{_beyond(evidence)}"),
        "<h2>Probabilities by group</h2>",
        _calibration(evidence),
    ]
    if evidence.rivals or evidence.path:
        figure = _figure(_front_figure(evidence), f"AUC and gap on the {rows_name}, with intervals.")
        parts += ["<h2>Beside other models</h2>", figure]
    if evidence.path:
        rows = [[f"{limit:g}", _interval(found.gap), _interval(found.auc)] for limit, found in evidence.path]
        parts += [_table(["limit", "gap", "AUC"], rows)]
    if evidence.rivals:
        parts += [_rivals(evidence)]
    parts += ["<h2>What fairness costs</h2>", _price(fitted)]
    if fit.max_gap is None:
        parts += ["<h2>Certificate</h2>", f"<p>{_text(str(fit.solution.certificate))}</p>"]
    if features:
        shown = sorted(features, key=lambda pair: -abs(pair[1]))[:_MOST_FEATURES]
        rows = [[name, f"{value:.6g}"] for name, value in shown]
        told = _small(f"Those of the log-odds of the positive label, {measured.positive!r}.")
        parts += ["<h2>Coefficients in raw units</h2>", told, _table(["feature", "coefficient"], rows)]
        if len(features) > len(shown):
            parts.append(_small(f"The {len(shown)} largest of {len(features):,}."))
    chosen = [[name, repr(value)] for name, value in settings.items()]
    parts += ["<h2>Settings and versions</h2>", _table(["setting", "value"], chosen, numbers=False)]
    parts.append(_small(", ".join(f"{name} {value}" for name, value in versions().items())))
    return _PAGE.format(title=_text(title), style=_STYLE, body="".join(parts))


def summary_html(fitted: Fitted) -> str:
    """Return the result of a fit in a few lines of HTML, for notebooks."""
    fit = fitted.fit
    gap = f"gap {fit.gap}, " if fitted.constrained else ""
    line = f"{fit.status.name}: {gap}AUC {fit.auc}, price {fit.price:.4f}"
    return f'<p style="font-size:.9em"><strong>{_text(line)}</strong><br>{_text(fit.reason)}</p>'


def _reached(fitted: Fitted, measured: Measured, rows_name: str) -> str:
    fit = fitted.fit
    asked = f"at most {fit.max_gap:g}" if fit.max_gap is not None else "a bound on the surrogate"
    lines = [["asked", "", asked, ""]]
    lines.append(_line("training rows", fit.train_gap if fitted.constrained else None, fit.train_auc))
    if fit.validation_auc is not None:
        lines.append(_line("held-out part of the fit", fit.validation_gap, fit.validation_auc))
    lines.append(_line(rows_name, measured.gap, measured.auc))
    return _table(["", "rows", "gap", "AUC"], lines)


def _line(name: str, gap: AUCEstimate | None, area: AUCEstimate) -> list[str]:
    return [name, f"{sum(area.counts):,}", _interval(gap), _interval(area)]


def _words(measured: Measured) -> str:
    """Return whom the largest gap favours, in words, and all gaps in a table."""
    told = f"<p>{_text(measured.favours)}</p>" if measured.favours else ""
    told += _list(measured.reasons)
    if not measured.groups:
        return told
    several = len(measured.metric.members) > 1
    rows = []
    for part in measured.groups:
        numbers = _interval(part.first), _interval(part.second), _signed(part.signed)
        named = f"{_group(part.group)}, {_group(part.rest)}" if measured.pairs else _group(part.group)
        rows.append([*([part.metric] if several else []), named, *numbers])
    called = "groups" if measured.pairs else "group"
    head = [*(["metric"] if several else []), called, "first AUC", "second AUC", "difference"]
    what = "Every two groups on their rows alone" if measured.pairs else "Each group against the rest"
    note = f"{what}: the two AUCs that the metric compares, and their difference."
    if (pair := measured.worst_pair) is not None and pair.gap.defined and not measured.pairs:
        alone = f"{pair.metric} gap is largest between {_group(pair.group)} and {_group(pair.rest)}"
        told += f"<p>Of two groups alone the {_text(f'{alone}: {_signed(pair.signed)}. {pair.favours}')}</p>"
    return told + _small(note) + _table(head, rows)


def _signed(estimate: AUCEstimate) -> str:
    if not np.isfinite(estimate.lower):
        return _interval(estimate)
    return _unbroken(f"{estimate.value:+.4f} [{estimate.lower:+.4f}, {estimate.upper:+.4f}]")


def _price(fitted: Fitted) -> str:
    fit = fitted.fit
    area, gap = fit.unconstrained_auc, fit.unconstrained_gap
    free = f"The best model known, with a target or without, has AUC {area} and gap {gap}."
    return f"<p>{_text(free)} Fairness costs {fit.price:.4f} of AUC on the rows that the target is about.</p>"


def _calibration(evidence: Evidence) -> str:
    rows = []
    for name, mask in _members(evidence):
        if mask.any():
            share, chance = float((evidence.label[mask] > 0).mean()), float(evidence.chance[mask].mean())
            rows.append([name, f"{int(mask.sum()):,}", f"{share:.3f}", f"{chance:.3f}", f"{chance - share:+.3f}"])
    table = _table(["group", "rows", "share of positives", "mean probability", "error"], rows)
    note = (
        "Probabilities are calibrated on all rows together. A model that may not read the group and whose ranking is"
        " held to a target is then off by group: the error says by how much."
    )
    return table + _small(note)


def _rivals(evidence: Evidence) -> str:
    lines = [["this model", _interval(evidence.measured.auc), _interval(evidence.measured.gap), "", ""]]
    for name, compared in evidence.rivals.items():
        other = compared.second
        lines.append([name, *map(_interval, (other.auc, other.gap, compared.auc, compared.gap))])
    return _table(["model", "AUC", "gap", "this model's AUC less its", "this model's gap less its"], lines)


def _members(evidence: Evidence) -> list[tuple[str, Any]]:
    """Return what each group is called and its mask (n,); of two groups both, without any all rows."""
    found = [(_group(group.value), group.signs > 0) for group in evidence.groups]
    if len(evidence.groups) == 1:
        found.append((_group(evidence.groups[0].rest), evidence.groups[0].signs < 0))
    return found or [("all rows", np.ones(len(evidence.label), dtype=np.bool_))]


def _roc_figure(evidence: Evidence) -> Figure:
    figure = empty_figure(5.6, 4.6)
    axes = figure.subplots()
    style_axes(axes)
    axes.plot([0, 1], [0, 1], color="#9a9a9a", linewidth=0.8)
    lines = ("-", "--", "-.", ":")
    for place, (name, mask) in enumerate(_members(evidence)[:_MOST_GROUPS]):
        scores, positive = evidence.scores[mask], evidence.label[mask] > 0
        if positive.all() or not positive.any():
            continue
        order = np.argsort(-scores, kind="stable")
        last = np.append(np.diff(scores[order]) != 0, True)  # rows of one score come together
        true = np.cumsum(positive[order])[last] / positive.sum()
        false = np.cumsum(~positive[order])[last] / (~positive).sum()
        area = metrics.auc(scores[positive], scores[~positive])
        axes.plot(
            np.append(0.0, false),
            np.append(0.0, true),
            color=OKABE_ITO[place],
            linestyle=lines[place % 4],
            label=f"{name} (AUC {area:.3f})",
        )
    axes.set(xlabel="share of negatives above the threshold", ylabel="share of positives above it")
    axes.set_aspect("equal")
    if axes.get_legend_handles_labels()[1]:  # none, where each group has rows of one class only
        figure.legend(frameon=False, loc="outside upper left", fontsize=9)
    return figure


def _score_figure(evidence: Evidence) -> Figure:
    members = [(name, mask) for name, mask in _members(evidence) if mask.any()][:_MOST_GROUPS]
    figure = empty_figure(7.6, 1.2 + 1.1 * len(members))
    axes = figure.subplots(len(members), 1, sharex=True, squeeze=False)[:, 0]
    edges = _score_edges(evidence.scores)
    for panel, (name, mask) in zip(axes, members, strict=True):
        style_axes(panel)
        for sign, colour, label in ((-1, OKABE_ITO[1], "negative"), (1, OKABE_ITO[0], "positive")):
            mine = np.clip(evidence.scores[mask & (evidence.label == sign)], edges[0], edges[-1])
            if mine.size:
                style: dict[str, Any] = {"histtype": "stepfilled", "alpha": 0.45, "color": colour, "label": label}
                panel.hist(mine, edges, density=True, **style)
        panel.set_title(name, fontsize=10, loc="left")
        panel.set_yticks([])
    fullest = max(axes, key=lambda panel: len(panel.get_legend_handles_labels()[1]))
    fullest.legend(frameon=False, fontsize=9, loc="upper right")
    axes[-1].set_xlabel("log-odds of the positive label")
    return figure


def _beyond(evidence: Evidence) -> str:
    """Say how many rows lie beyond the axis of the scores."""
    edges = _score_edges(evidence.scores)
    count = int(((evidence.scores < edges[0]) | (evidence.scores > edges[-1])).sum())
    return f" The first and last bars count {count:,} rows that lie beyond them, too." if count else ""


def _score_edges(scores: Any) -> Any:
    """Return the edges of the bars: far outliers, which would leave all others in one, are counted in the last."""
    low, first, third, high = np.quantile(scores, [0.0, 0.25, 0.75, 1.0])
    reach = 3.0 * (third - first)
    if reach > 0:
        low, high = max(low, first - reach), min(high, third + reach)
    return np.linspace(low, max(high, low + 1e-9), 41)


def _front_figure(evidence: Evidence) -> Figure:
    figure = empty_figure(6.4, 4.0)
    axes = figure.subplots()
    style_axes(axes)
    path = [found for _, found in evidence.path if _drawn(found)]
    if path:
        front = sorted((found.gap.value, found.auc.value) for found in path if found.gap is not None)
        style: dict[str, Any] = {"color": OKABE_ITO[0], "marker": ".", "linewidth": 0.8, "label": "limits of the fit"}
        axes.plot(*zip(*front, strict=True), **style)
    points = [("this model", evidence.measured), *((name, c.second) for name, c in evidence.rivals.items())]
    markers = ("o", "s", "^", "D", "v", "P", "X")
    for place, (name, found) in enumerate(points):
        if _drawn(found) and found.gap is not None:
            colour, marker = OKABE_ITO[place % len(OKABE_ITO)], markers[place % len(markers)]
            errors = [[[e.value - e.lower], [e.upper - e.value]] for e in (found.gap, found.auc)]
            style = {"color": colour, "marker": marker, "linestyle": "", "elinewidth": 0.8, "label": name}
            axes.errorbar([found.gap.value], [found.auc.value], xerr=errors[0], yerr=errors[1], **style)
    named = evidence.measured.metric.name.replace("$", r"\$")  # at an axis they would begin a formula
    axes.set(xlabel=f"{named} gap", ylabel="AUC")
    if axes.get_legend_handles_labels()[1]:  # none, where no gap is known on these rows
        figure.legend(frameon=False, fontsize=9, loc="outside upper left", ncols=3)
    return figure


def _drawn(found: Measured) -> bool:
    return found.gap is not None and found.gap.defined and found.auc.defined


def _figure(figure: Figure, caption: str) -> str:
    data = base64.b64encode(png(figure)).decode()
    width = int(figure.get_size_inches()[0] * 96)
    image = f'<img src="data:image/png;base64,{data}" alt="{_text(caption)}" width="{width}">'
    return f"<figure>{image}<figcaption>{_text(caption)}</figcaption></figure>"


def _interval(estimate: AUCEstimate | None) -> str:
    return "" if estimate is None else _unbroken(str(estimate))


def _unbroken(text: str) -> str:
    """Keep the ends of an interval on one line, and a p-value."""
    inside = re.sub(r"\[[^]]*\]", lambda found: found[0].replace(" ", NO_BREAK), text)
    return inside.replace("p = ", f"p{NO_BREAK}={NO_BREAK}")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    """Return a table, nothing without rows; a column of numbers alone stands to the right, where there may be such."""
    lines = [list(row) for row in rows]
    if not lines:
        return ""
    right = [numbers and all(map(_is_number, column)) and any(column) for column in zip(*lines, strict=True)]

    def line(tag: str, cells: Sequence[str]) -> str:
        kinds = (' class="number"' if number else "" for number in right)
        inside = "".join(f"<{tag}{kind}>{_text(cell)}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))
        return f"<tr>{inside}</tr>"

    body = "".join(line("td", row) for row in lines)
    return f'<div class="scroll"><table>{line("th", head)}{body}</table></div>'


def _is_number(cell: str) -> bool:
    return not cell or (cell.lstrip("+-")[:1].isdigit() and " " not in cell)


def _group(value: Any) -> str:
    """Return what a group is called, where a number alone would not be known as one."""
    return value if isinstance(value, str) else f"group{NO_BREAK}{value}"


def _list(items: Iterable[str]) -> str:
    inside = "".join(f"<li>{_text(item)}</li>" for item in items)
    return f"<ul>{inside}</ul>" if inside else ""


def _small(text: str) -> str:
    return f'<p class="small">{_text(text)}</p>'


def _text(value: str) -> str:
    return html.escape(value)

"""The demonstration: an ordinary ranking by wage, its unfairness, a limit on it, and what held-out rows say."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import minmaxcon as mm
from minmaxcon.cli import Output
from minmaxcon.metrics import AUCEstimate
from minmaxcon.results import OKABE_ITO, check_folder, empty_figure, png, style_axes, to_json, versions, write_folder
from minmaxcon_problems.fair_auc.datasets import load_dataset
from minmaxcon_problems.fair_auc.estimator import FairAUCClassifier
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.measured import Compared, Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Story", "run_demo", "story_figure", "story_text", "tell"]

FOLDER = Path("minmaxcon-demo")
_FILES = ("result.json", "demo.png")

DATA, METRIC = "twoyear", "inter_group"
MAX_GAP, KAPPA = 0.02, 0.1
TARGETS = (0.01, 0.02, 0.04, 0.06, 0.08)
"""The limits of the front that the figure shows."""
ROWS_PER_CELL = 400
"""Rows of each label and sex that the model of single rows keeps."""

_PROTECTED, _OTHERS = "women", "men"
_WIDTH = 96
_MARKERS = ("o", "s")


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """What the demonstration found.

    Attributes
    ----------
    sizes : tuple of int
        Training and held-out rows.
    fair, certified : FairAUCClassifier
        The model with a limit on its true gap, and the one with a bound on the surrogate.
    compared : Compared
        The fair model (``first``) and the ordinary one (``second``) on held-out rows.
    single : Measured
        The model of single rows, on held-out rows.
    kept : int
        Rows that it keeps.
    surrogate : Measured
        The certified model, on held-out rows.
    front : tuple of Measured
        Models of the limits ``TARGETS``, on held-out rows.
    """

    sizes: tuple[int, int]
    fair: FairAUCClassifier
    certified: FairAUCClassifier
    compared: Compared
    single: Measured
    kept: int
    surrogate: Measured
    front: tuple[Measured, ...]


def run_demo(output: Output, *, out: Path | None, overwrite: bool, seed: int) -> int:
    """Fit, print and write what ``minmaxcon demo`` tells; return its exit status."""
    if seed < 0:
        raise mm.InvalidInput("seed", seed, "must be at least 0.")
    target, replace = (FOLDER, True) if out is None else (out, overwrite)
    writes = out is not None or not output.json
    if writes:
        check_folder(target, overwrite=replace, only=None if overwrite else _FILES)
    with output.guarded():
        story = tell(seed)
        result = _as_data(story, seed)
        figure = png(story_figure(story)) if writes else b""
    if writes:
        write_folder(target, {"result.json": to_json(result).encode(), "demo.png": figure}, overwrite=replace)
    output.result(to_json(result) if output.json else story_text(story))
    written = f"written: {target / 'demo.png'} and {target / 'result.json'}"
    if writes and output.json:
        output.note(written)
    elif writes:
        output.result(f"\n{written}\n")
    return 0


def tell(seed: int = 0) -> Story:
    """Return what all models do; nothing here depends on time."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Probabilities are off")  # the story is about rankings
        return _told(seed)


def _told(seed: int) -> Story:
    data = load_dataset(DATA, seed=seed)
    train, test = data.train, data.test
    wage, sex = _words(train)

    def fitted(**options: Any) -> FairAUCClassifier:
        model = FairAUCClassifier(METRIC, positive="high", protected=_PROTECTED, random_state=seed, **options)
        return model.fit(train.features, wage, sensitive_features=sex)

    held_out = {"X": test.features, "y": _words(test)[0], "sensitive_features": _words(test)[1]}
    ordinary = LogisticRegression(max_iter=1000).fit(train.features, wage)
    fair, certified = fitted(max_gap=MAX_GAP), fitted(kappa=KAPPA, solver=mm.SFLS(oracle=mm.MirrorProx()))
    single = FairAUCClassifier(
        METRIC,
        max_gap=MAX_GAP,
        positive="high",
        protected=_PROTECTED,
        max_rows_per_cell=ROWS_PER_CELL,
        random_state=seed,
    )
    for row in range(len(train)):
        one = slice(row, row + 1)
        single.partial_fit(train.features[one], wage[one], sensitive_features=sex[one])
    cells = fair.measure(train.features, wage, sensitive_features=sex).cells
    return Story(
        sizes=(len(train), len(test)),
        fair=fair,
        certified=certified,
        compared=fair.compare(ordinary, **held_out),
        single=single.measure(**held_out),
        kept=sum(min(cell.rows, ROWS_PER_CELL) for cell in cells),
        surrogate=certified.measure(**held_out),
        front=tuple(fitted(max_gap=gap).measure(**held_out) for gap in TARGETS),
    )


def _words(rows: LabelledData) -> tuple[Any, Any]:
    """Return label and group (n,) of rows in words."""
    return np.where(rows.label > 0, "high", "low"), np.where(rows.group > 0, _PROTECTED, _OTHERS)


def _number(estimate: AUCEstimate) -> str:
    return f"{estimate.value:.3f} [{estimate.lower:.3f}, {estimate.upper:.3f}]"


def _reduction(difference: AUCEstimate) -> str:
    return f"{-difference.value:.3f} [{-difference.upper:.3f}, {-difference.lower:.3f}]"


def _gap(measured: Measured) -> AUCEstimate:
    assert measured.gap is not None  # noqa: S101  # every model here is measured with groups
    return measured.gap


def story_text(story: Story) -> str:
    """Return the story: five steps, each with words and with a line of numbers."""
    fair, ordinary, paired = story.compared.first, story.compared.second, story.compared.gap
    bounds, gap = story.certified.certificate_, story.fair.gap_
    assert paired is not None  # noqa: S101  # both models are measured with groups
    assert gap is not None  # noqa: S101  # the model was fitted with groups
    assert bounds is not None  # noqa: S101  # a model with kappa has one
    steps = (
        (
            "An ordinary model: logistic regression",
            f"Of held-out pairs, {_pairs(ordinary)}. The difference is the inter-group gap.",
            (f"gap {_number(_gap(ordinary))}", f"AUC {_number(ordinary.auc)}"),
        ),
        (
            f'A limit and its price: FairAUCClassifier("{METRIC}", max_gap={MAX_GAP})',
            f"The best ranking whose gap on the {story.sizes[0]:,} training rows is at most {MAX_GAP}.",
            (story.fair.status_.name, f"training gap {gap.value:.3f}", f"price {story.fair.price_:.3f} of AUC"),
        ),
        (
            "Does it hold on new rows?",
            f"Of held-out pairs, {_pairs(fair)}.",
            (
                f"gap {_number(_gap(fair))}, less by {_reduction(paired)}, p = {paired.p_value:.2g}",
                f"AUC {_number(fair.auc)}",
            ),
        ),
        (
            "The same from single rows: partial_fit",
            f"The training rows came one at a time, and a random {story.kept:,} of them were kept. On held-out rows:",
            (f"gap {_number(_gap(story.single))}", f"AUC {_number(story.single.auc)}"),
        ),
        (
            f"For researchers: the certificate of kappa={KAPPA}",
            (
                "A bound on the paper's convex surrogate, solved by a level-set method that proves how good its answer"
                " is; the true gap is promised by max_gap alone."
            ),
            (
                story.certified.status_.name,
                f"{bounds.lower:.4f} <= f* <= {bounds.upper:.4f}, {bounds.kind}",
                f"held-out gap {_number(_gap(story.surrogate))}",
            ),
        ),
    )
    text = f"{sum(story.sizes):,} workers ranked by wage (data set {DATA}), {story.sizes[1]:,} of them held out; "
    text += "95% intervals in brackets\n"
    for place, (heading, words, numbers) in enumerate(steps, start=1):
        text += f"\n{place}. {heading}\n"
        text += textwrap.fill(words, _WIDTH, initial_indent="   ", subsequent_indent="   ") + "\n"
        text += f"   {'; '.join(numbers)}\n"
    return text


def _pairs(measured: Measured) -> str:
    women, men = measured.groups[0].first, measured.groups[0].second
    return (
        f"a well-paid woman is ranked above a low-paid man in {women.value:.0%}, a well-paid man above a low-paid woman"
        f" in {men.value:.0%}"
    )


def _as_data(story: Story, seed: int) -> dict[str, Any]:
    """Return what the demonstration tells, as data."""
    compared, certificate = story.compared, story.certified.certificate_
    assert compared.gap is not None  # noqa: S101  # both models are measured with groups
    assert certificate is not None  # noqa: S101  # a model with kappa has one
    assert story.fair.gap_ is not None  # noqa: S101  # the model was fitted with groups
    return {
        "data": DATA,
        "metric": METRIC,
        "seed": seed,
        "ordinary": {"held_out": compared.second.as_dict()},
        "fair": {
            "max_gap": MAX_GAP,
            "status": str(story.fair.status_),
            "price": story.fair.price_,
            "train": {"auc": story.fair.auc_.as_dict(), "gap": story.fair.gap_.as_dict()},
            "held_out": compared.first.as_dict(),
        },
        "paired": {"auc": compared.auc.as_dict(), "gap": compared.gap.as_dict()},
        "single_rows": {"kept": story.kept, "held_out": story.single.as_dict()},
        "certified": {
            "kappa": KAPPA,
            "status": str(story.certified.status_),
            "certificate": {"lower": certificate.lower, "upper": certificate.upper, "kind": certificate.kind},
            "held_out": story.surrogate.as_dict(),
        },
        "front": [
            {"max_gap": gap, "held_out": found.as_dict()} for gap, found in zip(TARGETS, story.front, strict=True)
        ],
        "versions": versions(),
    }


def story_figure(story: Story) -> Figure:
    """Draw the two shares of pairs of both models, and AUC against the gap of all limits, on held-out rows."""
    figure = empty_figure(10.2, 4.2)
    shares, front = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
    _draw_shares(shares, story.compared)
    _draw_front(front, story.front, story.compared.second)
    for axes in (shares, front):
        style_axes(axes)
    figure.suptitle(f"{sum(story.sizes):,} workers ranked by wage: {story.sizes[1]:,} held-out rows, 95% intervals")
    return figure


def _draw_shares(axes: Axes, compared: Compared) -> None:
    models = {"ordinary\nmodel": compared.second, f"max_gap\n= {MAX_GAP}": compared.first}
    for place, (part, label) in enumerate((("second", "men above women"), ("first", "women above men"))):
        shares = [getattr(measured.groups[0], part) for measured in models.values()]
        at = np.arange(len(shares)) + (0.06 if place else -0.06)
        axes.errorbar(
            at,
            [100 * share.value for share in shares],
            yerr=100 * _lengths(shares),
            color=OKABE_ITO[place],
            marker=_MARKERS[place],
            markersize=8,
            linestyle="",
            capsize=4,
            label=f"well-paid {label}",
        )
    for model, measured in enumerate(models.values()):
        low, high = sorted((measured.groups[0].first.value, measured.groups[0].second.value))
        axes.annotate(
            f"gap\n{100 * (high - low):.1f}",
            (model + 0.18, 50 * (low + high)),
            va="center",
            fontsize="large",
            fontweight="bold",
        )
    axes.set_xticks(range(len(models)), list(models))
    axes.set_xlim(-0.5, len(models) - 0.4)
    axes.set_ylabel("ranked above the low-paid of the other sex,\n% of pairs")
    axes.legend(loc="lower right", frameon=False, fontsize="small")
    axes.margins(y=0.25)


def _draw_front(axes: Axes, front: Sequence[Measured], ordinary: Measured) -> None:
    names = [*(f"{gap:g}" for gap in TARGETS), "logistic regression"]
    for place, (name, found) in enumerate(zip(names, (*front, ordinary), strict=True)):
        gap, fair = _gap(found), place < len(front)
        axes.errorbar(
            gap.value,
            found.auc.value,
            xerr=_lengths([gap]),
            color=OKABE_ITO[2 if fair else 3],
            marker="o" if fair else "D",
            markersize=8,
            linestyle="",
            elinewidth=0.9,
            capsize=3,
        )
        axes.annotate(
            name,
            (gap.value, found.auc.value),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize="small",
        )
    axes.set_xlabel("inter-group gap (at each point the max_gap that was asked)")
    axes.set_ylabel("AUC")
    axes.set_xlim(left=-0.004)
    axes.margins(y=0.15)


def _lengths(estimates: Sequence[AUCEstimate]) -> Any:
    """Return the lengths (2, n) of error bars."""
    ends = np.array([(each.value - each.lower, each.upper - each.value) for each in estimates]).T
    return np.maximum(np.nan_to_num(ends), 0.0)

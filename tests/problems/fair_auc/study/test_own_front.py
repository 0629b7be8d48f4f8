"""The front of one's own rows: which candidate is taken, what is said of it, and the picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from minmaxcon_problems.fair_auc.study import own_front as front_module
from minmaxcon_problems.fair_auc.study.own_front import OwnFront, front_figure, own_front, own_report
from minmaxcon_problems.fair_auc.study.report import Plan
from minmaxcon_problems.fair_auc.study.study import FairAUCStudy, Panel
from minmaxcon_problems.fair_auc.study.sweep import Configuration, Sweep
from tests.cli.conftest import table
from tests.outlines import outline

from .test_own_rows import found_in

__all__ = ["table"]

PANEL = Panel("rows.csv", "inter_group", "linear")
AUCS = {0.01: 0.70, 0.05: 0.74, 0.1: 0.75, 0.2: 0.752}
"""AUC on validation rows by target."""


def part(auc: float, gap: float, error: float = 0.01) -> dict[str, Any]:
    auc_interval, gap_interval = ([value - 1.96 * error, value + 1.96 * error] for value in (auc, gap))
    return {"auc": auc, "auc_interval": auc_interval, "gap": gap, "gap_interval": gap_interval}


@pytest.fixture(autouse=True)
def _outlined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make outlines in the place of PNG files."""
    monkeypatch.setattr(front_module, "png", outline)


def record(
    method: str,
    seed: int,
    kind: str,
    aucs: Mapping[float, float],
    missed: float | None = None,
    by: float = 0.02,
    held: float = 0.0,
) -> dict[str, Any]:
    """Return what a run found: with the seed AUCs rise and gaps on test rows grow.

    On the test rows the AUC falls as the target grows, so that by these another candidate would be taken. A gap on the
    training rows is ``by`` above the target that is missed; those on the validation rows are above by ``held``.
    """
    points = []
    for target, auc in aucs.items():
        off = by if target == missed else 0.0
        parts = {
            "train": part(auc + 0.02, target + off),
            "validation": part(auc + 0.001 * seed, target + held),
            "test": part(1.4 - auc, target + 0.01 * (seed + 1)),
        }
        points.append({"kind": kind, "asked": target, **parts})
    return {"method": method, "seed": seed, "points": points, "seconds": 1.0, "data": PANEL.data}


def told_of(records: Sequence[Mapping[str, Any]], rows: Any, **files: str) -> Any:
    configuration = Configuration("fair_auc", PANEL, "max_gap", 0, False)
    planned = Plan([configuration], [PANEL], {PANEL: {"correlation": "does not apply."}}, ["max_gap"])
    sweep = Sweep([dict(one) for one in records], len(records), 0, {}, False, [])
    return own_report(planned, sweep, rows, {"data": "my rows.csv", **files}, "fronts")


@pytest.fixture(scope="module")
def two_splits() -> OwnFront:
    ours = [record("max_gap", seed, "target", AUCS) for seed in (0, 1)]
    more = [record("max_gap", seed, "selected", {0.05: 0.76}) for seed in (0, 1)]
    return own_front([*ours, *more, record("unconstrained", 0, "selected", {1.0: 0.77})])


def test_the_smallest_target_near_the_best_is_taken(two_splits: OwnFront) -> None:
    """By the means over the splits, on the validation rows."""
    assert [one.target for one in two_splits.candidates] == list(AUCS)
    assert two_splits.chosen is not None
    assert two_splits.best == 3
    assert two_splits.error == pytest.approx(0.01, rel=1e-4)
    assert two_splits.candidates[two_splits.chosen].target == 0.1  # .75 is near .752, .74 is not
    chosen = two_splits.candidates[two_splits.chosen]
    assert chosen.gap["test"][0] == pytest.approx(0.1 + 0.015)
    assert chosen.auc["validation"][0] == pytest.approx(0.75 + 0.0005)
    assert two_splits.splits == 2
    assert [one.method for one in two_splits.others] == ["unconstrained"]  # 0.05 is not the target


def test_a_target_that_training_missed_is_not_taken(table: Path) -> None:
    records = [record("max_gap", 0, "target", AUCS, missed=0.1)]
    found = own_front(records)
    assert found.chosen is not None
    assert found.candidates[found.chosen].target == 0.2
    text = told_of(records, found_in(table)).text
    assert "\n0.1 !   train" in text
    assert "! the target was not met on the training rows" in text
    assert own_front([record("max_gap", 0, "target", {0.1: 0.7}, missed=0.1)]).chosen is None
    for by, taken in ((0.0009, 0.1), (0.0011, 0.2), (0.009, 0.2)):  # training leaves a thousandth open
        near = own_front([record("max_gap", 0, "target", AUCS, missed=0.1, by=by)])
        assert near.chosen is not None
        assert near.candidates[near.chosen].target == taken, by
    slack = record("max_gap", 0, "target", AUCS)
    slack["points"] += [{**slack["points"][-1], "asked": larger} for larger in (0.25, 0.3)]
    told = told_of([slack], found_in(table))
    assert [one["target"] for one in told.summary["candidates"]] == list(AUCS)
    assert "\nlarger targets change nothing: 0.25, 0.3\n" in told.text
    nothing = told_of([record("unconstrained", 0, "selected", {1.0: 0.77})], found_in(table))
    assert "No candidates" in nothing.text
    assert nothing.summary["command"] is None


def test_the_text_says_what_to_do(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # lines are as long as the terminal is wide
    records = [record("max_gap", seed, kind, AUCS) for seed in (0, 1) for kind in ("target", "selected")]
    rows = found_in(table, ignore="colour", protected="b")
    report = told_of(records, rows)
    assert report.text.startswith(
        "rows.csv, inter_group, linear: 144 rows train, 48 validate and 48 test, in 2 splits\n"
    )
    for line in (
        "protected: 'b', against 'a'",
        "0.1 *   train       0.7700 [0.7504, 0.7896]   0.1000 [0.0804, 0.1196]",
        "        test        0.6500 [0.6304, 0.6696]   0.1150 [0.0954, 0.1346]",
        "* Chosen: target 0.1, the smallest whose AUC on the validation rows, 0.7505, is within one standard",
        "solve fair_auc --data 'my rows.csv' --label label --sensitive group --protected b --ignore colour --metric",
        "colour --metric inter_group --max-gap 0.1 --out model\n",
        "It divides the rows anew, 70% to train and 30% to test",
        "fronts/candidates.csv",
        "targets, as above, selected  0.6500 [0.6304, 0.6696]  0.1150 [0.0954, 0.1346]",
        "  - correlation penalty (inter_group): does not apply.",
    ):
        assert line in report.text, (line, report.text)
    lines = report.files["candidates.csv"].decode().splitlines()
    assert lines[0] == "method,kind,target,split,rows,auc,gap,auc_lower,auc_upper,gap_lower,gap_upper"
    assert len(lines) == 1 + 2 * 2 * 4 * 3


def test_other_ways_say_what_they_were_selected_by(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No limit is the best of any gap; a way none of whose models has so small a gap is marked."""
    monkeypatch.setenv("COLUMNS", "110")
    ours, free = record("max_gap", 0, "target", AUCS), record("unconstrained", 0, "selected", {1.0: 0.77})
    selected, rows = record("max_gap", 0, "selected", AUCS), found_in(table)
    beyond = [record("correlation", seed, "selected", AUCS, held=0.001 * seed) for seed in (0, 1)]
    all_of = (
        "Other ways, each with the model of the best AUC on the validation rows among those whose gap there is at most"
    )
    for others, heading, marked in (
        ([selected, free], f"{all_of}\n0.1; no limit: the best AUC, of any gap\n", None),
        ([selected], f"{all_of}\n0.1\n", None),
        ([free], "Without a limit: the model of the best AUC on the validation rows, of any gap\n", None),
        ([selected, *beyond], f"{all_of}\n0.1\n", "correlation penalty !"),
    ):
        report = told_of([ours, *others], rows)
        told = report.text.partition("front.png.\n\n")[2]
        assert told.startswith(heading), told
        assert [line.partition(" !")[0] + " !" for line in told.splitlines() if " !" in line] == [marked] * bool(marked)
        assert ("! no model has so small a gap" in told) is (marked is not None)
        assert [one["within"] for one in report.summary["others"] if one["method"] == "correlation"] == [False] * bool(
            marked
        )
    assert not told_of([ours], rows).text.partition("front.png.\n")[2].startswith("\nOther")


def test_the_picture_shows_every_part_and_the_one_that_is_taken(two_splits: OwnFront) -> None:
    figure = front_figure(two_splits, PANEL)
    (axes,) = figure.axes
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:3] == ["training rows", "validation rows", "test rows"]
    assert "chosen: target 0.1, with 95% intervals on test rows" in names
    assert "no limit, test rows" in names
    drawn = next(line for line in axes.lines if line.get_label() == "test rows")
    assert drawn.get_xdata().tolist() == pytest.approx([one.gap["test"][0] for one in two_splits.candidates])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("inter-group gap", "AUC")
    assert FairAUCStudy().labels()["inter_group"] == "inter-group"


def test_a_gap_that_has_no_interval_says_so(table: Path) -> None:
    """As one of a set with one member has none, whether the run is at hand or was read from its file."""
    for none in (math.nan, None):
        records = [record("max_gap", 0, kind, AUCS) for kind in ("target", "selected")]
        for point in (point for one in records for point in one["points"]):
            point["test"]["gap_interval"] = [none, none]
        text = told_of(records, found_in(table)).text
        assert text.count("(no interval)") > len(AUCS)
        assert "nan" not in text

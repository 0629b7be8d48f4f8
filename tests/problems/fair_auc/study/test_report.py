"""Series, tables and figures: what they say is what the records hold."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from minmaxcon.errors import UnknownName
from minmaxcon.results import csv_text
from minmaxcon.results.figures import OKABE_ITO, png
from minmaxcon_problems.fair_auc.study import report as report_module
from minmaxcon_problems.fair_auc.study.fronts import hypervolume, series_of
from minmaxcon_problems.fair_auc.study.report import (
    achieved_rows,
    ahead_rows,
    best_auc_rows,
    check_out,
    front_panels,
    front_rows,
    hypervolume_rows,
    plan,
    report,
    text_tables,
    write_report,
)
from minmaxcon_problems.fair_auc.study.study import FairAUCStudy, Panel
from minmaxcon_problems.fair_auc.study.sweep import Sweep
from tests.outlines import outline

from .fake_study import FakeStudy

ORDER = ("ours", "other", "unconstrained")


def part(gap: float | None, auc: float | None, low: float | None = None) -> dict[str, Any]:
    return {"gap": gap, "auc": auc, "gap_interval": [low, 1.0]}


def record(method: str, seed: int, points: list[dict[str, Any]]) -> dict[str, Any]:
    names = {"data": "d", "metric": "m", "model": "w", "method": method, "seed": seed}
    return {**names, "points": points}


def point(asked: float | None, gap: float | None, auc: float | None, low: float = 0.0, kind: str = "selected") -> Any:
    return {"kind": kind, "asked": asked, "train": part(asked, auc), "validation": None, "test": part(gap, auc, low)}


RECORDS = [
    record("ours", 0, [point(0.01, 0.008, 0.8), point(0.05, 0.06, 0.88, 0.04), point(0.01, 0.03, 0.7, 0.02, "target")]),
    record(
        "ours", 1, [point(0.01, 0.012, 0.82, 0.011), point(0.05, 0.04, 0.9), point(0.01, None, None, 0.0, "target")]
    ),
    record("other", 0, [point(0.01, 0.009, 0.7), point(0.05, 0.001, 0.6)]),
    record("other", 1, [point(0.01, 0.007, 0.72), point(0.05, 0.4, 0.2)]),
    record(
        "unconstrained",
        0,
        [{"kind": "selected", "asked": math.inf, "train": part(0.2, 0.9), "test": part(0.2, 0.91)}],
    ),
    record("unconstrained", 1, []),
]


def found() -> Any:
    return series_of(RECORDS)


def by(rows: Any, **names: Any) -> Any:
    (row,) = [row for row in rows if all(row[key] == value for key, value in names.items())]
    return row


def test_series_keep_their_seeds_apart() -> None:
    panels = found()
    assert list(panels) == [Panel("d", "m", "w")]
    keys = [one.key for one in panels[Panel("d", "m", "w")]]
    assert keys == [("ours", "selected"), ("ours", "target"), ("other", "selected"), ("unconstrained", "selected")]
    assert [list(one.seeds) for one in panels[Panel("d", "m", "w")]] == [[0, 1], [0, 1], [0, 1], [0]]


def test_hypervolume_rows() -> None:
    rows = hypervolume_rows(found())
    each = [hypervolume([0.008, 0.06], [0.8, 0.88]), hypervolume([0.012, 0.04], [0.82, 0.9])]
    row = by(rows, method="ours", kind="selected")
    assert (row["seeds"], row["best"]) == (2, True)
    assert row["mean"] == pytest.approx(np.mean(each), rel=1e-12)
    assert row["sd"] == pytest.approx(np.std(each, ddof=1), rel=1e-12)
    assert [row["best"] for row in rows].count(True) == 1
    assert math.isnan(by(rows, method="unconstrained")["sd"])


def test_ours_against_the_best_other_paired_over_seeds() -> None:
    (row,) = ahead_rows(found(), ["ours"])
    mine = [hypervolume([0.008, 0.06], [0.8, 0.88]), hypervolume([0.012, 0.04], [0.82, 0.9])]
    others = [hypervolume([0.009, 0.001], [0.7, 0.6]), hypervolume([0.007, 0.4], [0.72, 0.2])]
    difference = np.subtract(mine, others)
    assert (row["method"], row["other"], row["seeds"], row["verdict"]) == ("ours", "other", 2, "ahead")
    assert row["mean"] == pytest.approx(difference.mean())
    assert row["error"] == pytest.approx(difference.std(ddof=1) / np.sqrt(2))
    (turned,) = ahead_rows(found(), ["other"])
    assert (turned["verdict"], turned["mean"]) == ("behind", pytest.approx(-difference.mean()))
    close = [record("a", seed, [point(0.1, 0.0, auc)]) for seed, auc in enumerate((0.8, 0.9))]
    close += [record("b", seed, [point(0.1, 0.0, auc)]) for seed, auc in enumerate((0.83, 0.86))]
    (level,) = ahead_rows(series_of(close), ["b"])
    assert (level["mean"], level["error"]) == (pytest.approx(-0.01), pytest.approx(0.07))
    assert level["verdict"] == "level"
    assert ahead_rows(found(), ["ours"], apart=["other"]) == []


def test_a_sweep_that_has_not_ended_compares_the_same_seeds() -> None:
    """The rival lacks the seed that is hard for all; on the others ours is level, though its mean is lower."""
    records = [record("ours", seed, [point(0.1, 0.0, auc)]) for seed, auc in enumerate((0.8, 0.9, 0.6))]
    records += [record("steady", seed, [point(0.1, 0.0, 0.78)]) for seed in range(3)]
    records += [record("rival", seed, [point(0.1, 0.0, auc)]) for seed, auc in enumerate((0.8, 0.9))]
    (row,) = ahead_rows(series_of(records), ["ours", "steady"])
    assert (row["method"], row["other"], row["seeds"], row["verdict"]) == ("ours", "rival", 2, "ahead")
    assert row["mean"] == pytest.approx(0.0, abs=1e-12)
    assert [one["method"] for one in hypervolume_rows(series_of(records)) if one["best"]] == ["steady"]
    assert ahead_rows(series_of([records[2], records[-1]]), ["ours"]) == []


def test_a_method_that_stands_apart_is_shown_and_never_the_best() -> None:
    rows = hypervolume_rows(found(), apart=["ours"])
    assert [row["method"] for row in rows if row["best"]] == ["other"]
    assert [row["method"] for row in rows if row["apart"]] == ["ours", "ours"]
    text = text_tables(found(), str, own=["other"], apart=["ours"])
    assert "0 of" not in text
    text = text_tables(found(), str, own=["ours"])
    assert "ahead in 1, level in 0, behind in 0 of 1 panels" in text


def test_best_auc_rows_mark_no_series_that_misses_a_seed() -> None:
    rows = best_auc_rows(found())
    ours, other = (by(rows, method=name, kind="selected", gap=0.01) for name in ("ours", "other"))
    assert (ours["seeds"], ours["mean"], ours["best"]) == (1, 0.8, False)
    assert (other["seeds"], other["mean"], other["best"]) == (2, pytest.approx(0.71), True)
    none = by(rows, method="unconstrained", gap=0.05)
    assert (none["seeds"], none["best"]) == (0, False)
    assert math.isnan(none["mean"])


def test_achieved_rows_count_intervals_that_reach_the_target() -> None:
    rows = achieved_rows(found())
    assert [by(rows, method="ours", kind="selected", asked=asked)["met"] for asked in (0.01, 0.05)] == [0.5, 1.0]
    row = by(rows, method="ours", kind="selected", asked=0.01)
    assert (row["test_gap"], row["train_gap"]) == (pytest.approx(0.01), 0.01)
    assert row["test_gap_sd"] == pytest.approx(0.004 / math.sqrt(2))
    assert math.isnan(row["validation_gap"])
    target = by(rows, kind="target")
    assert (target["met"], target["test_gap"]) == (0.5, 0.03)
    assert by(rows, method="unconstrained")["asked"] == math.inf


def test_front_rows_mark_the_mean_front() -> None:
    rows = [row for row in front_rows(found()) if row["curve"] == "asked"]
    assert [row["front"] for row in rows if row["method"] == "other"] == [True, False]
    row = by(rows, method="ours", kind="selected", asked=0.05)
    assert (row["gap"], row["gap_error"]) == (pytest.approx(0.05), pytest.approx(0.01))
    drawn = [row for row in front_rows(found()) if row["curve"] == "interpolated" and row["method"] == "ours"]
    assert by(drawn, kind="selected", gap=0.1)["auc"] == pytest.approx(0.89)


def test_csv_reads_back_exactly() -> None:
    rows = front_rows(found())
    back = list(csv.DictReader(io.StringIO(csv_text(rows))))
    for row, read in zip(rows, back, strict=True):
        assert read["auc"] == "" if math.isnan(row["auc"]) else float(read["auc"]) == row["auc"]
    assert csv_text([]) == ""


def test_text_tables() -> None:
    text = text_tables(found(), str.upper)
    assert "OURS, no validation" in text
    assert "0.8000 (1)" in text
    assert "0.030  50%" in text
    assert "nothing has finished" in text_tables({}, str)


def test_a_figure_draws_the_means_with_bars_on_both_axes() -> None:
    figure = front_panels(found(), order=ORDER, label=str)
    (axes,) = figure.axes
    bars = [box for box in axes.containers if isinstance(box, ErrorbarContainer)]
    assert all(box.has_xerr and box.has_yerr for box in bars)
    lines = [line for line in axes.lines if len(line.get_xdata()) == 2 and line.get_linestyle() != "None"]
    assert any(np.allclose(np.c_[line.get_data()], [[0.01, 0.81], [0.05, 0.89]]) for line in lines)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "ours, no validation", "other", "unconstrained"]
    assert "1 point outside" not in [text.get_text() for text in axes.texts]
    assert any("outside" in text.get_text() for text in axes.texts)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("true AUC gap on test", "AUC on test")
    assert figure.get_suptitle() == "d, w: means over seeds, bars are standard errors"


def test_methods_look_the_same_in_every_figure_and_figures_are_the_same_bytes() -> None:
    study = FakeStudy()

    def panels(data: list[str]) -> Any:
        return series_of(
            {"data": p.data, "metric": p.metric, "model": p.model, "method": m, "seed": s, **study.run(p, m, s)}
            for p in study.panels(data=data, model=["linear"])
            for m in study.methods(p)
            for s in range(2)
        )

    order = study.methods(study.panels()[0])
    figures = [front_panels(panels(data), order=order, label=str) for data in (["a9a"], ["a9a", "bank"])]
    looks = []
    for figure in figures:
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        handles = figure.legends[0].legend_handles
        looks.append(
            {n: (h.get_color(), h.get_marker(), h.get_markerfacecolor()) for n, h in zip(names, handles, strict=True)}
        )
    assert looks[0] == looks[1]
    assert len(set(looks[0].values())) == 7
    assert {look[0] for look in looks[0].values()} <= {*OKABE_ITO, "black"}
    assert png(front_panels(found(), order=ORDER, label=str)) == png(front_panels(found(), order=ORDER, label=str))
    assert [axes.get_title() for axes in figures[1].axes[:2]] == ["group", "intra_group"]


def test_panels_are_those_asked_for_and_none_of_another_name() -> None:
    study = FairAUCStudy()
    assert study.panels(data=["bank"], metric=["group"], model=["mlp"]) == [Panel("bank", "group", "mlp")]
    assert len(study.panels(data=["bank", "compas"], model=["linear"])) == 2 * len(
        study.panels(["bank"], None, ["mlp"])
    )
    for argument, name, meant in (("data", "bnk", "bank"), ("metric", "grup", "group"), ("model", "mpl", "mlp")):
        with pytest.raises(UnknownName, match=f"{argument}='{name}': unknown name; did you mean '{meant}'"):
            study.panels(**{argument: [name]})


def test_what_is_missing_has_no_axes_and_what_is_not_finite_is_said() -> None:
    records = [record("ours", 0, [point(0.01, None, None)]), record("ours", 0, [point(0.01, 0.02, 0.8)])]
    records[1] |= {"data": "e", "metric": "n"}
    figure = front_panels(series_of(records), order=ORDER, label=str)
    seen = [axes for axes in figure.axes if axes.get_visible()]
    assert (len(figure.axes), len(seen)) == (4, 2)
    assert [text.get_text() for text in seen[0].texts] == ["nothing to draw"]


def test_numbers_of_candidates_are_told_and_leftovers_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_module, "png", outline)
    study = FakeStudy()
    planned = plan(study, "fake", data=["a9a"], metric=["group"], model=["linear"], seeds=2)
    records = []
    for one in planned.configurations:
        names = {"data": one.panel.data, "metric": one.panel.metric, "model": one.panel.model}
        made = {**names, "method": one.method, "seed": one.seed, **study.run(one.panel, one.method, one.seed)}
        records.append({**made, "candidates": 5 + one.seed * (one.method == "max_gap")})
    found = report(study, planned, Sweep(records, len(records), 0, {}, False, []))
    text = " ".join(found.text.split())
    assert "from which validation data choose: max gap (ours) 5 to 6, level set 5," in text
    (tmp_path / ".tables.txt.new-ffffff00").write_text("half")
    check_out(tmp_path)
    write_report(tmp_path, found)
    assert {path.name for path in tmp_path.iterdir()} == set(found.files)

"""Growth of time and memory with size: what is measured and said; never how long anything takes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.cli import main
from minmaxcon_problems.fair_auc.study import scale
from minmaxcon_problems.fair_auc.study.scale import AXES, Growth, PartRisk, Point, ScaleResult, _growth, bench_scale

SMALL = {"rows": (60, 240), "features": (2, 4), "constraints": (1, 2), "groups": (2, 3), "runs": (1, 2)}


@pytest.fixture(scope="module")
def result() -> ScaleResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENBLAS_CORETYPE", "Haswell")
        patch.setattr(scale, "_BLOCK", 10)
        return bench_scale(sizes=SMALL, limit=0.05)


def test_every_size_is_measured_and_told(result: ScaleResult) -> None:
    assert {axis: tuple(one.size for one in result.points if one.axis == axis) for axis in AXES} == SMALL
    assert all(min(one.step, one.solve, one.peak) > 0 for one in result.points)
    assert [one.axis for one in result.growth] == list(AXES)
    shown = result.table()
    assert "OPENBLAS_CORETYPE=Haswell was set" in shown
    assert "one thread" in shown
    assert shown.count("\nconstraints") == 3  # two sizes and one row of exponents
    assert result.settings["OPENBLAS_CORETYPE"] == "Haswell"
    assert result.versions["numpy"] == np.__version__
    json.dumps(result.as_dict())


def test_an_axis_that_is_none_is_named() -> None:
    with pytest.raises(mm.UnknownName, match="sizes='row': unknown name; did you mean 'rows'"):
        bench_scale(sizes={"row": (60,)})


def test_a_figure_has_a_panel_for_each(result: ScaleResult) -> None:
    panels = result.figure().axes
    assert len(panels) == 3 * len(AXES)
    assert {(panel.get_xscale(), panel.get_yscale()) for panel in panels} == {("log", "log")}


def test_memory_grows_with_rows_and_exponents_are_slopes() -> None:
    """Twice the rows take at least 1.5 times the memory; a known power is found again; what is unsolved has none."""
    few, many = bench_scale(sizes={"rows": (4_000, 8_000)}, limit=0.01).points
    assert 1.5 < many.peak / few.peak < 2.5
    points = [Point("rows", n, 3.0 * n**0.5, 0.0, 2.0 * n, "SFLS", "SOLVED", 7.0) for n in (1, 10, 1000)]
    (found,) = _growth(points)
    assert (found.axis, found.peak) == ("rows", 0.0)
    assert (found.step, found.solve) == pytest.approx((0.5, 1.0))
    unsolved = Point("rows", 2000, 9.0, 0.0, 1.0, "SFLS", "BUDGET", 7.0)
    assert _growth([*points, unsolved])[0].solve is None
    assert _growth(points[:1]) == []
    assert Growth.__slots__ == ("axis", "step", "solve", "peak")


def test_a_part_has_the_mean_loss_of_its_rows() -> None:
    """Against the mean over those rows by NumPy, and a finite difference."""
    rng = np.random.default_rng(0)
    features, target, part = rng.normal(size=(30, 3)), rng.choice([-1.0, 1.0], 30), np.arange(30) % 3
    weights = mm.data.population_weights(part[:, None] == np.arange(3))
    x, batch = rng.normal(size=(2, 3)), {"features": features, "target": target, "group_weights": weights}

    def mean(x: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -(x @ features[part == 1].T) * target[part == 1]).mean(-1)

    found = PartRisk(1, 3, 0.7).evaluate(x, batch)
    np.testing.assert_allclose(found.F, mean(x), rtol=1e-12)
    step = 1e-6 * np.eye(3)
    slopes = [(mean(x + each) - mean(x - each)) / 2e-6 for each in step]
    np.testing.assert_allclose(found.pullback(np.ones(2), x[..., :0]), np.transpose(slopes), rtol=1e-6)


def test_the_command_prints_data_and_refuses_what_it_cannot_measure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.png").touch()
    words = ["bench", "scale", "--only", "groups", "--groups", "2", "--limit", "0.01", "--json", "--quiet"]
    assert main(words) in (0, None)
    assert [one["axis"] for one in json.loads(capsys.readouterr().out)["points"]] == ["groups"]
    taken = ["--figure", str(tmp_path / "mine.png")], "--overwrite"
    for wrong, says in (
        taken,
        (["--only", "rowz"], "rows"),
        (["--rows", "5"], "40 of rows"),
        (["--limit", "0"], "positive"),
    ):
        assert main(["bench", "scale", *wrong]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert says in line

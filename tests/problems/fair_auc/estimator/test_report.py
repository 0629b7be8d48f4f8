"""The report: one page that needs nothing else, tells the numbers of measure, and escapes what it is given."""

from __future__ import annotations

import html
import re
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from minmaxcon.errors import InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier, resolve_metric
from minmaxcon_problems.fair_auc.estimator import report as report_module
from minmaxcon_problems.fair_auc.estimator.report import NO_BREAK
from tests.outlines import outline
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows


@pytest.fixture(scope="module")
def few() -> Rows:
    return biased_rows(200, 0)


@pytest.fixture(scope="module")
def fair(few: Rows) -> FairAUCClassifier:
    return FairAUCClassifier("inter_group", max_gap=0.05, random_state=0).fit(
        few.X, few.y, sensitive_features=few.group
    )


@pytest.fixture
def outlined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put outlines in the place of the figures of a report."""
    monkeypatch.setattr(report_module, "png", outline)


class Balance(HTMLParser):
    """Tags that were opened and not closed; voids aside."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def words(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page)).replace(NO_BREAK, " ")


def test_one_page_tells_everything_and_needs_nothing_else(fair: FairAUCClassifier, tmp_path: Path) -> None:
    rows, path = biased_rows(300, 1), tmp_path / "report.html"
    other = LogisticRegression(max_iter=1000).fit(rows.X, rows.y)
    fair.report(path, rows.X, rows.y, sensitive_features=rows.group, rivals={"<b>plain</b>": other}, title="A & <b>")
    page = path.read_text(encoding="utf-8")
    parser = Balance()
    parser.feed(page)
    assert not parser.open
    assert len(parser.links) == 3
    assert all(link.startswith("data:image/png;base64,") for link in parser.links)
    assert "<script" not in page
    assert "http" not in page
    told = words(page)
    found = fair.measure(rows.X, rows.y, sensitive_features=rows.group)
    apart = fair.compare(other, rows.X, rows.y, sensitive_features=rows.group)
    for text in (
        str(found.gap),
        str(found.auc),
        found.favours,
        str(fair.gap_),
        str(fair.auc_),
        fair.reason_,
        fair.status_.value,
        f"{fair.price_:.4f}",
        str(apart.auc),
        str(apart.gap),
        f"{fair.coef_[0, 1]:.6g}",
        "A & <b>",
        "<b>plain</b>",
        "max_gap",
        "random_state 0",
        resolve_metric("inter_group").description,
        "numpy",
    ):
        assert text in " ".join(told.split()), text
    for cell in found.cells:
        assert f"{cell.rows:,}" in told
    one_line = " ".join(told.split())
    for group in "ab":  # probabilities by group, and their errors
        mine = rows.group == group
        share, chance = np.mean(rows.y[mine] == "yes"), fair.predict_proba(rows.X[mine])[:, 1].mean()
        assert f"{group} {mine.sum():,} {share:.3f} {chance:.3f} {chance - share:+.3f}" in one_line
    again = tmp_path / "again.html"
    fair.report(again, rows.X, rows.y, sensitive_features=rows.group, rivals={"<b>plain</b>": other}, title="A & <b>")
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.usefixtures("outlined")
def test_a_file_is_replaced_by_the_users_word_alone(fair: FairAUCClassifier, few: Rows, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(InvalidInput):
        fair.report(path, few.X, few.y, sensitive_features=few.group)
    assert path.read_text() == "mine"
    fair.report(path, few.X, few.y, sensitive_features=few.group, overwrite=True)
    assert path.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("kind", ["kappa", "no groups", "one class of a group", "network", "many features", "held out"])
def test_whatever_was_fitted_can_be_reported(
    few: Rows, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import minmaxcon as mm

    if kind != "no groups":  # whose figures are like those of other tests
        monkeypatch.setattr(report_module, "png", outline)
    settings: dict[str, Any] = {"random_state": 0}
    if kind == "kappa":
        settings |= {"kappa": 0.2, "solver": mm.SFLS(oracle=mm.SMD(steps=50), levels=2)}
    if kind == "network":
        settings |= {"model": "mlp", "time_limit": 0.1}
    if kind == "held out":
        settings |= {"validation_fraction": 0.3, "max_gap": 0.2, "alpha": 0.0, "time_limit": 0.2}
    if kind == "many features":
        settings |= {"objective": "quadratic_auc", "alpha": 0.0}
        few = few._replace(X=np.hstack([few.X, np.random.default_rng(0).normal(size=(len(few.y), 40))]))
    group = None if kind == "no groups" else few.group
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = FairAUCClassifier("group", **settings).fit(few.X, few.y, sensitive_features=group)
    rows = few.take(np.flatnonzero((few.group == "a") | (few.y == "no"))) if kind == "one class of a group" else few
    path = tmp_path / "report.html"
    fitted.report(path, rows.X, rows.y, sensitive_features=None if group is None else rows.group)
    page = path.read_text()
    assert ("Certificate" in page) == (kind == "kappa")
    assert ("Coefficients in raw units" in page) == (kind != "network")
    assert ("The 40 largest of 44." in page) == (kind == "many features")
    assert ("held-out part of the fit" in page) == (kind == "held out")


@pytest.mark.parametrize("kept", ["one group", "one class of each group"])
def test_rows_on_which_no_gap_is_known_can_be_reported(
    fair: FairAUCClassifier, few: Rows, kept: str, tmp_path: Path
) -> None:
    """Without a warning: models are in the table, but not drawn, and absent groups are not told of."""
    mine = few.group == "a" if kept == "one group" else (few.group == "a") == (few.y == "yes")
    rows, path = few.take(np.flatnonzero(mine)), tmp_path / "report.html"
    rivals = {"sum": rows.X.sum(axis=1)}
    fair.report(path, rows.X, rows.y, sensitive_features=rows.group, rivals=rivals)
    page = words(path.read_text())
    found = fair.measure(rows.X, rows.y, sensitive_features=rows.group)
    assert not found.gap.defined
    assert str(found.gap) in page
    assert "Beside other models" in page
    told = page.partition("Probabilities by group")[2].partition("Beside other models")[0]
    assert [name in told.split() for name in "ab"] == [True, kept != "one group"]


@pytest.mark.usefixtures("outlined")
@pytest.mark.parametrize("names", [("at most", "above"), ("above", "at most")])
def test_coefficients_are_those_of_the_positive_label(few: Rows, tmp_path: Path, names: tuple[str, str]) -> None:
    """Whichever label sorts first: whoever has more of the first feature has better chances of it."""
    positive, negative = names
    labels = np.where(few.y == "yes", positive, negative)
    fitted = FairAUCClassifier("inter_group", max_gap=0.3, positive=positive, random_state=0)
    fitted.fit(few.X, labels, sensitive_features=few.group)
    fitted.report(tmp_path / "report.html", few.X, labels, sensitive_features=few.group)
    page = words((tmp_path / "report.html").read_text(encoding="utf-8"))
    told = " ".join(page.split("Coefficients in raw units")[1].split())
    assert told.startswith(f"Those of the log-odds of the positive label, {positive!r}. feature coefficient")
    found = {name: float(value) for name, value in re.findall(r"\b(x\d) +(-?[\d.e-]+)", told)}
    place = fitted.classes_.tolist().index(positive)
    chance = fitted.predict_proba(few.X.mean(0) + 1e-3 * np.eye(5, 4, k=-1))[:, place]  # and a step along each feature
    odds = np.log(chance / (1 - chance))
    np.testing.assert_allclose([found[f"x{k}"] for k in range(4)], 1e3 * (odds[1:] - odds[0]), rtol=1e-4)
    assert found["x0"] > 0


def test_notebooks_show_the_result_of_a_fit(fair: FairAUCClassifier) -> None:
    shown = fair._repr_mimebundle_()["text/html"]
    assert str(fair.gap_) in html.unescape(shown)
    assert str(fair.gap_) not in FairAUCClassifier()._repr_mimebundle_()["text/html"]


@pytest.mark.usefixtures("outlined")
def test_several_limits_metrics_and_groups_are_tables(tmp_path: Path) -> None:
    """The models of all limits, and each group in each metric; numbers are told to be groups."""
    rows = biased_rows(240, 0)
    group = np.where(rows.group == "a", 1, np.where(np.arange(240) % 2 == 0, 2, 3))
    fitted = FairAUCClassifier(["inter_group", "group"], max_gap=[0.3, 0.2], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(rows.X, rows.y, sensitive_features=group).report(
            tmp_path / "report.html", rows.X, rows.y, sensitive_features=group
        )
    told = " ".join(words((tmp_path / "report.html").read_text(encoding="utf-8")).split())
    for model in fitted.path_:
        assert f" {model.max_gap:g} {model.gap_} {model.auc_} " in told
    for part in fitted.measure(rows.X, rows.y, sensitive_features=group).groups:
        assert f" {part.metric} group {part.group} {part.first} {part.second} {part.signed.value:+.4f} [" in told
    assert told.count("Chance may explain") <= 2  # one sentence each, of the largest gap and of the worst pair
    pair = fitted.measure(rows.X, rows.y, sensitive_features=group).worst_pair
    signed = f"{pair.signed.value:+.4f} [{pair.signed.lower:+.4f}, {pair.signed.upper:+.4f}]"
    named = (
        f"the {pair.metric} gap is largest between group {pair.group} and group {pair.rest}: {signed}. {pair.favours}"
    )
    assert f"Of two groups alone {named}" in told


def test_far_outliers_leave_the_other_scores_their_bars(few: Rows, tmp_path: Path) -> None:
    fitted = FairAUCClassifier("group", max_gap=0.3, alpha=0.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted.fit(few.X, few.y, sensitive_features=few.group)
    far = few.X.copy()
    far[:3] *= 1e6
    for name, features, beyond in (("near", few.X, False), ("far", far, True)):
        path = tmp_path / f"{name}.html"
        fitted.report(path, features, few.y, sensitive_features=few.group)
        assert ("bars count 3 rows that lie beyond them" in path.read_text()) == beyond

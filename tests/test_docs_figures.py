"""Figures that are drawn from the code agree with it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import minmaxcon
from minmaxcon_problems import fair_auc

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

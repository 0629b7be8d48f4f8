"""Figures that are drawn from the code agree with it."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_figure_of_the_layers_is_the_contract() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "figures" / "layers.py"))
    names = [name for layer in drawn["layers"]() for name in layer]
    folders = {
        path.stem for path in (ROOT / "minmaxcon").iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert set(names) == folders - {"__init__", "__main__"}
    assert drawn["svg"](drawn["layers"]()) == drawn["TARGET"].read_text(encoding="utf-8")

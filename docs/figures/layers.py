"""The figure of the layers, drawn from the contract that import-linter checks.

Run it in the checkout: ``python docs/figures/layers.py`` writes ``docs/_static/layers.svg``.
"""

from __future__ import annotations

import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "docs" / "_static" / "layers.svg"

WIDTH, HEIGHT, SPACE = 620, 50, 10
COLOURS = ("#cc79a7", "#d55e00", "#e69f00", "#f0e442", "#009e73", "#56b4e9", "#0072b2", "#666666")
SHORT = {
    "cli": "the command line",
    "results": "records, folders, figures",
    "testing": "checks for authors of plug-ins",
    "reference": "exact solutions by cvxpy",
    "registry": "problems by name",
    "solvers": "SFLS, IQRC and others; the one loop",
    "oracles": "SMD and others, for level problems",
    "data": "sources, splits",
    "tables": "readers of files",
    "models": "scores of rows",
    "metrics": "AUC, intervals",
    "distributed": "processes",
    "core": "constraints, problems and the interfaces of solvers",
    "geometry": "sets, divergences, closed-form prox",
    "errors": "one tree",
    "arrays": "NumPy and torch",
    "checks": "one rule",
    "files": "written whole",
    "memory": "a limit",
}


def layers() -> list[list[str]]:
    """Return the layers from the top down, each a list of packages."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    found = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    named = [layer for layer in found if not layer.startswith("__")]  # __main__ only calls cli
    return [[name.strip(" ()") for name in re.split(r"[:|]", layer)] for layer in named]


def svg(rows: list[list[str]]) -> str:
    """Return the drawing: a row of boxes a layer, and problems beside them."""
    height = len(rows) * (HEIGHT + SPACE) + SPACE
    total = WIDTH + 230
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" '
            'font-family="system-ui, sans-serif" font-size="14" text-anchor="middle">'
        ),
        "  <title>The layers of minmaxcon: each imports only from the layers below it</title>",
        f'  <rect width="{total}" height="{height}" fill="#fff"/>',
    ]
    for row, (names, colour) in enumerate(zip(rows, COLOURS * 2, strict=False)):
        width = (WIDTH - SPACE * (len(names) + 1)) / len(names)
        for place, name in enumerate(names):
            corner = SPACE + place * (width + SPACE), SPACE + row * (HEIGHT + SPACE)
            lines += box(*corner, width, HEIGHT, colour, name, SHORT[name])
    lines += box(
        WIDTH + SPACE, SPACE, 230 - 3 * SPACE, height - 2 * SPACE, "#999999", "minmaxcon_problems", "public names only"
    )
    return "\n".join([*lines, "</svg>", ""])


def box(x: float, y: float, width: float, height: float, colour: str, name: str, text: str) -> list[str]:
    """Return a box with a name and a line below it."""
    middle, center = x + width / 2, y + height / 2
    return [
        (
            f'  <rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" '
            f'fill="{colour}" fill-opacity="0.18" stroke="{colour}"/>'
        ),
        f'  <text x="{middle:g}" y="{center - 3:g}" font-weight="600">{escape(name)}</text>',
        f'  <text x="{middle:g}" y="{center + 14:g}" font-size="11.5" fill="#444">{escape(text)}</text>',
    ]


if __name__ == "__main__":
    TARGET.write_text(svg(layers()), encoding="utf-8")

"""The chart of the page "How to choose": questions from the goal to the solver, with the answer of each.

Run it in the checkout: ``python docs/figures/choose.py`` writes ``docs/_static/choose.svg``.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

TARGET = Path(__file__).parents[1] / "_static" / "choose.svg"

BLUE, GREEN, GREY = "#0072b2", "#009e73", "#666666"
QUESTIONS = (
    # the question, how it is answered to leave the chart here, where that leads, and how it is answered to go on
    ("A fair ranking of your own rows?", "yes", "FairAUCClassifier", "no", GREEN),
    ("Is it one of the nine problems?", "yes", "mm.load_problem", "no", GREEN),
    ("Functions max E F + <a, E G> - g(a)?", "no", "another package", "yes, write them", GREY),
    ("Surrogates of true measures?", "yes", "SuccessiveApproximation", "no", BLUE),
    ("A function that is not convex?", "yes", "IQRC", "no", BLUE),
    ("Feasible points and a proof?", "yes", "SFLS", "no, a rough answer", BLUE),
)
LAST = ("PrimalDual or ConEx", BLUE)

WIDTH, HEIGHT, STEP, SIDE = 305, 44, 84, 235
MARGIN, GAP = 10, 65


def svg() -> str:
    """Return the drawing: questions down the left, answers on the right."""
    total = 2 * MARGIN + WIDTH + GAP + SIDE
    height = 2 * MARGIN + len(QUESTIONS) * STEP + HEIGHT
    right = MARGIN + WIDTH + GAP
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" '
            'font-family="system-ui, sans-serif" font-size="15" text-anchor="middle">'
        ),
        "  <title>From the goal to the solver</title>",
        (
            '  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z" fill="#444"/></marker></defs>'
        ),
        f'  <rect width="{total}" height="{height}" fill="#fff"/>',
    ]
    for row, (question, leave, answer, stay, colour) in enumerate(QUESTIONS):
        top = MARGIN + row * STEP
        middle = top + HEIGHT / 2
        lines += box(MARGIN, top, WIDTH, question, GREY, HEIGHT / 2)
        lines += arrow(MARGIN + WIDTH, middle, right, middle)
        lines.append(f'  <text x="{MARGIN + WIDTH + GAP / 2 - 3:g}" y="{middle - 6:g}" fill="#444">{leave}</text>')
        lines += box(right, top, SIDE, answer, colour, 5)
        lines += arrow(MARGIN + WIDTH / 2, top + HEIGHT, MARGIN + WIDTH / 2, top + STEP)
        lines.append(
            f'  <text x="{MARGIN + WIDTH / 2 + 10:g}" y="{top + (HEIGHT + STEP) / 2 + 5:g}" '
            f'text-anchor="start" fill="#444">{stay}</text>'
        )
    lines += box(MARGIN, MARGIN + len(QUESTIONS) * STEP, WIDTH, LAST[0], LAST[1], 5)
    return "\n".join([*lines, "</svg>", ""])


def box(x: float, y: float, width: float, text: str, colour: str, radius: float) -> list[str]:
    """Return a box with a line of text."""
    bold = "" if colour == GREY and radius > 5 else ' font-weight="600"'
    return [
        (
            f'  <rect x="{x:g}" y="{y:g}" width="{width:g}" height="{HEIGHT}" rx="{radius:g}" '
            f'fill="{colour}" fill-opacity="0.15" stroke="{colour}"/>'
        ),
        f'  <text x="{x + width / 2:g}" y="{y + HEIGHT / 2 + 5:g}"{bold}>{escape(text)}</text>',
    ]


def arrow(x: float, y: float, to_x: float, to_y: float) -> list[str]:
    """Return an arrow."""
    return [f'  <path d="M{x:g} {y:g} L{to_x:g} {to_y:g}" stroke="#444" fill="none" marker-end="url(#tip)"/>']


if __name__ == "__main__":
    TARGET.write_text(svg(), encoding="utf-8")

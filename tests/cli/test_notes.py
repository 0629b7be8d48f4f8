"""Warnings for users are one-line notes on standard error; standard output stays the result's."""

from __future__ import annotations

import io
import sys
import warnings

import pytest

import minmaxcon as mm
from minmaxcon.cli import ProgressLine
from minmaxcon.cli.output import Output, paragraphs, wrapped
from tests.cases import quadratic

COMPILED = (
    "--engine jax compiles nothing here, as the steps of SFLS(MirrorProx) are not compiled: "
    "name a method whose steps are, such as --solver sfls, or leave the engine out."
)
FOR_USERS = [
    (mm.WeakConvexityWarning("weight=1 is not above 3."), "weight=1 is not above 3."),
    (mm.EngineWarning("jax", "SFLS(MirrorProx)"), COMPILED),
    (UserWarning("rows.csv: one\n  odd row."), "rows.csv: one odd row."),
]


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("json", [False, True])
@pytest.mark.parametrize("warning, shown", FOR_USERS)
def test_a_warning_for_users_is_one_line_with_options_as_they_are_typed(
    warning: Warning, shown: str, json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    passed_on = pytest.warns(DeprecationWarning, match="another library's")
    with passed_on, Output(json=json, quiet=False).guarded():
        warnings.warn(warning, stacklevel=1)
        warnings.warn("another library's", DeprecationWarning, stacklevel=1)
    done = capsys.readouterr()
    assert (done.out, done.err) == ("", f"minmaxcon: note: {shown}\n")


@pytest.mark.filterwarnings("always")
def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with Output(json=False, quiet=True).guarded():
        warnings.warn("weight=1 is not above 3.", mm.WeakConvexityWarning, stacklevel=1)
    assert capsys.readouterr() == ("", "")


def test_the_way_warnings_are_shown_is_put_back() -> None:
    before = warnings.showwarning
    with Output(json=False, quiet=False).guarded():
        assert warnings.showwarning is not before
    assert warnings.showwarning is before


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_progress_is_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    line = ProgressLine(Output(json=False, quiet=False), every=1e9)
    line("1 of 2 runs")
    line("x" * 200)
    line.end()
    assert shown.getvalue() == "\r\x1b[K1 of 2 runs\r\x1b[K" + "x" * 110 + "\r\x1b[K"
    bar = Terminal()
    monkeypatch.setattr(sys, "stderr", bar)
    mm.solve(quadratic(0.9), budget=1, callbacks=Output(json=False, quiet=False).progress())
    assert "\r" in bar.getvalue()
    assert "minmaxcon: " not in bar.getvalue()


@pytest.mark.parametrize("names", [1, 6, 12, 30])
def test_lines_are_filled_however_long_their_opening_is(names: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the solvers that a note is about, which may be longer than a line."""
    monkeypatch.setenv("COLUMNS", "100")
    opening, text = (
        f"  - {', '.join(['successive'] * names)}: ",
        "the row tells nothing of the method; allow more. " * 8,
    )
    shown = wrapped(opening, text)
    assert shown.split() == (opening + text).split()  # no word is torn
    assert shown.startswith("  - successive")
    lines = shown.splitlines()
    assert len(lines) <= 2 + len(opening + text) // 60
    assert max(map(len, lines)) <= 100


def test_a_heading_without_sentences_is_left_out() -> None:
    assert paragraphs({"Fairness": (), "Certificate": ["It holds."]}) == "\nCertificate\n  - It holds.\n"

"""Warnings of ours are one-line notes on standard error; standard output stays the result's."""

from __future__ import annotations

import warnings

import pytest

import minmaxcon as mm
from minmaxcon.cli.output import Output


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("json", [False, True])
@pytest.mark.parametrize("kind", [mm.WeakConvexityWarning, mm.EngineWarning])
def test_a_warning_of_ours_is_one_line(kind: type[Warning], json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with Output(json=json, quiet=False).guarded():
        warnings.warn("weight=1 is not above 3.", kind, stacklevel=1)
        warnings.warn("another library's", DeprecationWarning, stacklevel=1)
    done = capsys.readouterr()
    assert (done.out, done.err) == ("", "minmaxcon: note: weight=1 is not above 3.\n")


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

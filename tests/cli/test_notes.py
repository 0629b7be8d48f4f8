"""Warnings of ours are one-line notes on standard error; standard output stays the result's."""

from __future__ import annotations

import warnings

import pytest

import minmaxcon as mm
from minmaxcon.cli.output import Output

COMPILED = (
    "--engine jax compiles nothing here, as the steps of SFLS(MirrorProx) are not compiled: "
    "name a method whose steps are, such as --solver sfls, or leave the engine out."
)
OURS = [
    (mm.WeakConvexityWarning("weight=1 is not above 3."), "weight=1 is not above 3."),
    (mm.EngineWarning("jax", "SFLS(MirrorProx)"), COMPILED),
]


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("json", [False, True])
@pytest.mark.parametrize("warning, shown", OURS)
def test_a_warning_of_ours_is_one_line_with_options_as_they_are_typed(
    warning: Warning, shown: str, json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with Output(json=json, quiet=False).guarded():
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

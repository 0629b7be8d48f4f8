"""``minmaxcon check``: reports that can be read, JSON, and exit statuses."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import minmaxcon as mm
from minmaxcon import registry
from minmaxcon.cli import main
from tests.cases import quadratic
from tests.testing.faulty_geometry import LowDiameter


class _Plugin(mm.ProblemPlugin):
    """The quadratic toy, with a faulty set on demand."""

    name = "checked"
    summary = "A problem for this test."

    def load(self, bound: float = 0.5, faulty: bool = False) -> mm.MinMaxProblem:
        problem = quadratic(bound)
        primal = LowDiameter(3, 6.0) if faulty else problem.primal
        return mm.MinMaxProblem(problem.objective, problem.constraints, primal, problem.data, name="quadratic")

    def examples(self) -> Sequence[Mapping[str, Any]]:
        return ({"bound": 0.5}, {"bound": 0.7})


class _Point:
    value = "tests.cli.test_check:_Plugin"

    def load(self) -> Any:
        return _Plugin


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_entry_points", lambda: {"checked": _Point()})
    registry._imported.cache_clear()
    yield
    registry._imported.cache_clear()


def test_every_example_is_checked_and_the_report_says_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "checked"]) == 0
    out, err = capsys.readouterr()
    assert "minmaxcon check checked --bound 0.5" in out
    assert "minmaxcon check checked --bound 0.7" in out
    assert "checks passed" in out
    for word in ("primal", "objective", "constraints[0] linear", "unbiased", "convexity", "strong_convexity"):
        assert word in out
    assert "2 of 2" in err


def test_its_headline_is_the_command_that_repeats_it(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the problem was loaded with and what the headline, typed into a shell, loads it with are the same."""
    seen = []

    class Listed(_Plugin):
        def load(
            self,
            names: Sequence[str] = ("a",),
            bounds: float | Sequence[float] = 0.5,
            folder: str = "",
            strict: bool = False,
            seed: int = 0,
        ) -> mm.MinMaxProblem:
            seen.append((list(names), list(bounds), folder, strict, seed))
            return quadratic(0.5)

        def examples(self) -> Sequence[Mapping[str, Any]]:
            return ({"names": ("a", "b c"), "bounds": [0.05, 0.1], "folder": "it's here; $HOME", "strict": True},)

    monkeypatch.setattr(registry, "_entry_points", lambda: {"checked": SimpleNamespace(value="", load=lambda: Listed)})
    done = call("check", "checked", "--seed", "3")
    headline = done.out.splitlines()[0]
    assert shlex.split(headline)[:3] == ["minmaxcon", "check", "checked"]
    assert call(*shlex.split(headline)[1:]).out == done.out
    first, again = seen
    assert first == again == (["a", "b c"], [0.05, 0.1], "it's here; $HOME", True, 3)


def test_a_failure_is_exit_status_1_and_names_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "checked", "--faulty", "--seed", "2"]) == 1
    out, err = capsys.readouterr()
    assert "FAILED  primal: diameter" in out
    assert "theory/generator.html#divergence-diameter" in out
    assert err == ""


def test_json_is_all_that_standard_output_carries(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "checked", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [report["options"] for report in found] == [{"bound": 0.5}, {"bound": 0.7}]
    assert all(report["passed"] for report in found)
    assert {"subject", "check", "status", "expected", "seen", "counterexample", "page"} == set(found[0]["findings"][0])
    assert err == ""


@pytest.mark.parametrize(
    "words, said",
    [
        (["check", "chekced"], "did you mean 'checked'"),
        (["check", "checked", "--bond", "1"], "Did you mean --bound?"),
        (["check", "checked", "--seed", "-1"], "--seed"),
        (["check", "checked", "--seed", "1.5"], "whole number"),
        (["check", "checked", "--bound", "nan"], "bound"),
        (["check"], "check --help"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert said in err

"""A time limit counts from the start of the command: imports and loading are part of it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import minmaxcon as mm
from minmaxcon import registry
from minmaxcon.cli.clock import Clock, LateError, current_clock

LATE = "before the problem was imported and loaded; give more time. Nothing was written."


rung: list[Exception] = []
"""What was raised while the slow problem was loaded."""


class Slow(mm.ProblemPlugin):
    """Loads the toy problem, slowly, as a reader of blocks does; it may swallow errors.

    The clock begins with it where ``limit`` is given, so that it rings here and not in what comes before.
    """

    name = "slow"

    def load(
        self, blocks: int = 1000, swallow: int = 0, wrap: bool = False, limit: float | None = None
    ) -> mm.MinMaxProblem:
        rung.clear()
        if limit is not None:
            clock = current_clock()
            clock._disarm()
            clock.limit, clock._began = limit, time.perf_counter()
            clock._arm()
        for _ in range(blocks):
            try:
                time.sleep(0.01)
            except Exception as failure:
                rung.append(failure)
                if wrap:
                    raise OSError("a block cannot be read") from failure
                if not swallow:
                    raise
                swallow -= 1
        return mm.load_problem("toy")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the slow problem, and one whose import never ends."""

    def hang() -> Any:
        time.sleep(60)

    points = {**registry._entry_points(), "slow": SimpleNamespace(value="a:b", load=Slow)}
    points["hang"] = SimpleNamespace(value="c:d", load=hang)
    monkeypatch.setattr(registry, "_entry_points", lambda: points)
    registry._imported.cache_clear()


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(
    "words, times",
    [
        (("slow", "--time-limit=60", "--limit=0.1"), 1),
        (("slow", "--time-limit=60", "--limit=0.1", "--swallow", 1), 2),
        (("slow", "--time-limit=60", "--limit=0.1", "--wrap"), 1),
        (("hang", "--time-limit=0.1"), 0),
        (("hang", "--time_limit=0.1"), 0),
        (("hang", "--time_limit", "0.1"), 0),
    ],
    ids=lambda words: "-".join(map(str, words)) if isinstance(words, tuple) else "",
)
def test_loading_that_takes_longer_is_one_line(
    words: Any, times: int, call: Callable[..., Any], tmp_path: Path
) -> None:
    """A slow reader, one that swallows or rewrites errors, and a plug-in whose import hangs."""
    rung.clear()
    before, began = signal.getsignal(signal.SIGALRM), time.perf_counter()
    done = call("solve", *words, "--out", tmp_path / "r", "--checkpoint", tmp_path / "kept")
    assert time.perf_counter() - began < 5.0
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("minmaxcon: the time limit of 0.1 s was reached after ")
    assert done.err.endswith(f"{LATE}\n")
    assert len(done.err.splitlines()) == 1
    assert len(rung) == times  # the clock rang while the problem was loaded, as often as it was not heard
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGALRM) is before


@pytest.mark.usefixtures("slow")
def test_what_loading_takes_is_part_of_the_limit(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    solve = mm.solve

    def watched(*parts: Any, **given: Any) -> Any:
        seen.append(given)
        return solve(*parts, **given)

    monkeypatch.setattr("minmaxcon.cli.solve.mm.solve", watched)
    done = call("solve", "slow", "--blocks", 20, "--time-limit", 30, "--json", "--quiet")
    assert done.status == 0, done.err
    told, given = json.loads(done.out), seen[0]
    assert (given["time_limit"], told["settings"]["time_limit"]) == (30.0, 30.0)
    assert 0.2 <= given["elapsed"] < 10.0


def test_a_limit_that_is_not_reached_changes_no_bit(call: Callable[..., Any]) -> None:
    """However large it is: no timer of a system counts to all numbers."""
    limits = [(), *(("--time-limit", limit) for limit in ("50", "1e12", "1e300"))]
    told = [json.loads(call("solve", "toy", "--json", "--quiet", *limit).out) for limit in limits]
    assert all(one["evidence"] == told[0]["evidence"] for one in told)


@pytest.mark.parametrize("words", [("--time-limit", "soon"), ("--time-limit=-1",), ("--time-limit", "0")])
def test_a_limit_that_is_none_is_bad_input(words: Any, call: Callable[..., Any]) -> None:
    done = call("solve", "toy", *words)
    assert (done.status, done.out) == (2, "")
    assert "--time-limit" in done.err
    assert len(done.err.splitlines()) == 1


def test_seconds_that_were_spent_before_count() -> None:
    problem = mm.load_problem("toy")
    found = mm.solve(problem, mm.SFLS(tolerance=1e-9, levels=10**6), time_limit=5.0, elapsed=5.0)
    assert found.status is mm.Status.BUDGET
    assert found.reason.startswith("The time limit of 5 s was reached")
    assert found.seconds < 2.0
    with pytest.raises(mm.InvalidInput, match="elapsed=-1"):
        mm.solve(problem, elapsed=-1.0)


@pytest.mark.timeout(0)  # the runner of the tests sets no timer of its own
def test_another_timer_goes_on() -> None:
    """Such as that of a test runner."""
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with Clock(30.0).ringing():
            time.sleep(0.1)
        time.sleep(0.05)
        assert rung == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_without_signals_the_limit_is_looked_at_after_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "setitimer")
    clock = Clock(0.01)
    with clock.ringing():
        time.sleep(0.02)
        with pytest.raises(LateError, match=r"the time limit of 0\.01 s was reached"):
            clock.stop()
    assert current_clock().limit == float("inf")

"""The clock of a command: it starts with the command, and rings at the time limit of loading, or of a check."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from minmaxcon.errors import MinMaxConError

__all__ = ["Clock", "LateError", "command_clock", "current_clock"]

_AGAIN = 0.5
"""Seconds after which the clock rings once more: code that is imported or reads data may swallow an error."""

_LONGEST = 1e8
"""Seconds, about three years, that the timer of every system can count."""

_AWAITED = {"solve": "the problem was imported and loaded", "verify": "every claim was checked"}
"""By command that has a limit: what must have happened by then."""


class LateError(MinMaxConError):
    """The time limit was reached before there was a problem to solve, or before a result was checked."""


class Clock:
    """Seconds since a command began, and its limit, infinite where there is none.

    Parameters
    ----------
    limit : float
        Seconds.
    command : str
        The command that it is of.

    Examples
    --------
    >>> from minmaxcon.cli.clock import Clock
    >>> clock = Clock(60.0)
    >>> with clock.ringing():
    ...     clock.over
    False
    """

    def __init__(self, limit: float = math.inf, command: str = "solve") -> None:
        self.limit, self.rung, self._command = limit, False, command
        self._began = time.perf_counter()
        self._before: tuple[Any, tuple[float, float], float] | None = None

    @property
    def seconds(self) -> float:
        """How long the command has run."""
        return time.perf_counter() - self._began

    @property
    def over(self) -> bool:
        """Whether the limit is reached."""
        return self.seconds >= self.limit

    @property
    def late(self) -> LateError:
        """The error that says so."""
        return LateError(
            f"the time limit of {self.limit:g} s was reached after {self.seconds:.1f} s, before "
            f"{_AWAITED[self._command]}; give more time. Nothing was written."
        )

    @contextmanager
    def ringing(self) -> Iterator[None]:
        """Raise LateError once the limit is reached, wherever the main thread then is, until :meth:`stop` is called.

        By SIGALRM, where the system has it; elsewhere, and while other code than Python's runs, at the next occasion.
        """
        self._arm()
        try:
            yield
        finally:
            self._disarm()

    def stop(self) -> None:
        """Stop ringing: what it is for is done. Raises LateError if that was after the limit.

        So a limit holds in other threads, too, and where an error that it raised was swallowed.
        """
        self._disarm()
        if self.over:
            self.rung = True
            raise self.late

    def _arm(self) -> None:
        if math.isinf(self.limit) or not hasattr(signal, "setitimer"):
            return
        if threading.current_thread() is threading.main_thread():
            handler = signal.signal(signal.SIGALRM, self._ring)
            timer = signal.setitimer(signal.ITIMER_REAL, min(max(self.limit - self.seconds, 1e-6), _LONGEST), _AGAIN)
            self._before = handler, timer, time.perf_counter()

    def _disarm(self) -> None:
        """Stop the timer, and let one that ran before go on."""
        if self._before is not None:
            handler, (delay, interval), since = self._before
            self._before = None
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, handler or signal.SIG_DFL)
            if delay > 0:
                left = max(delay - (time.perf_counter() - since), 1e-3)
                signal.setitimer(signal.ITIMER_REAL, left, interval)

    def _ring(self, _which: int, _frame: Any) -> None:
        self.rung = True
        raise self.late


_CURRENT: ContextVar[Clock | None] = ContextVar("clock", default=None)


def current_clock() -> Clock:
    """Return the clock of the command that runs; one without a limit where a function is called by itself."""
    return _CURRENT.get() or Clock()


@contextmanager
def command_clock(words: Sequence[str]) -> Iterator[Clock]:
    """Start the clock of a command line, with its time limit where it is one that solves or verifies.

    Raises LateError where the limit is reached before the problem is loaded, or a result verified, whatever that code
    makes of it.
    """
    command = next((word for word in words if not word.startswith("-")), "")
    clock = Clock(_limit(words), command) if command in _AWAITED else Clock()
    token = _CURRENT.set(clock)
    try:
        with clock.ringing():
            yield clock
    except LateError:
        raise
    except Exception as error:
        if clock.rung:  # code that was loaded has made another error of it
            raise clock.late from error
        raise
    finally:
        _CURRENT.reset(token)


def _limit(words: Sequence[str]) -> float:
    """Return the limit that words give, before they are parsed; what is no limit is refused when they are."""
    found = math.inf
    for word, after in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") == "--time-limit":  # both are taken
            try:
                limit = float(value if equals else after)
            except ValueError:
                continue
            found = limit if limit > 0 else math.inf
    return found

"""Output of a command: results to standard output, everything else to standard error."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

import minmaxcon as mm
from minmaxcon.cli.options import one_line
from minmaxcon.registry import cause_of

__all__ = ["Output", "ProgressLine", "paragraphs", "table", "wrapped"]

_EVERY = 5.0
"""Seconds between two lines of progress."""

_PREFIX = "minmaxcon: "
"""Beginning of every line on standard error."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command may say.

    Attributes
    ----------
    json : bool
        Whether standard output carries JSON and nothing else.
    quiet : bool
        Whether standard error stays empty where all goes well.

    Examples
    --------
    >>> from minmaxcon.cli import Output
    >>> output = Output(json=False, quiet=True)
    >>> output.result("objective 1.25")
    objective 1.25
    """

    json: bool
    quiet: bool

    def result(self, text: str) -> None:
        """Write the result to standard output."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Write a line to standard error, unless quiet."""
        if not self.quiet:
            self.failure(text)

    def failure(self, text: str) -> None:
        """Write a line to standard error, also if quiet: why a command did not do what was asked."""
        print(f"{_PREFIX}{text}", file=sys.stderr, flush=True)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Keep whatever other code prints off standard output, and its warnings silent if quiet; ours become notes.

        Raises MinMaxConError where that code ends the program: with status 0 and no result it would look like success.
        """
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **named: Any) -> None:
            if isinstance(message, mm.EngineWarning):
                self.note(f"note: {message.told(f'--engine {message.engine}', '--solver sfls')}")
            elif category is UserWarning or issubclass(category, mm.WeakConvexityWarning):
                self.note(f"note: {one_line(str(message))}")
            else:
                shown(message, category, *place, **named)

        with redirect_stdout(sys.stderr), warnings.catch_warnings():
            if self.quiet:
                warnings.simplefilter("ignore")
            warnings.showwarning = show
            try:
                yield
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as ended:
                what = f"sys.exit({ended.code!r})"[:60] if isinstance(ended, SystemExit) else cause_of(ended)
                raise mm.MinMaxConError(
                    f"code that was loaded ended the program before there was a result ({what}); mend it."
                ) from ended

    def progress(self) -> list[Callable[[mm.Progress], Any]]:
        """Return the callbacks that show progress: a bar on a terminal, else a line on standard error now and then."""
        if self.quiet:
            return []
        if sys.stderr.isatty():
            return [mm.progress_bar(file=sys.stderr)]
        return [mm.progress_lines(file=sys.stderr, prefix=_PREFIX, first=_EVERY, every=_EVERY)]


class ProgressLine:
    """One line on standard error: written over on a terminal, elsewhere a line of its own now and then.

    Parameters
    ----------
    output : Output
        Nothing is written where it is quiet.
    every : float
        Seconds between two lines where there is no terminal; the last, of ``done``, is always written.

    Examples
    --------
    >>> from minmaxcon.cli import Output, ProgressLine
    >>> line = ProgressLine(Output(json=False, quiet=True))
    >>> line("3 of 10 runs")  # quiet: nothing is written
    """

    def __init__(self, output: Output, every: float = _EVERY) -> None:
        self._output, self._every, self._last = output, every, time.monotonic()
        self._terminal = sys.stderr.isatty() and not output.quiet

    def __call__(self, text: str, *, done: bool = False) -> None:
        """Show a text."""
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{text[:110]}")
            sys.stderr.flush()
        elif done or self.due:
            self._last = time.monotonic()
            self._output.note(text)

    @property
    def due(self) -> bool:
        """Whether a text would be shown."""
        return self._terminal or time.monotonic() - self._last >= self._every

    def end(self) -> None:
        """Leave the line."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")


def table(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Return rows as aligned columns with two blanks between; the first ``left`` columns are flush left.

    Parameters
    ----------
    rows : sequence of sequence of str
        Cells; all rows equally long, the heading first.
    left : int
        Number of columns that are flush left; the others are flush right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) if place < left else cell.rjust(width) for place, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def paragraphs(notes: Mapping[str, Sequence[str]]) -> str:
    """Return sentences under their headings, wrapped to the terminal."""
    text = ""
    for heading, sentences in notes.items():
        if sentences:
            text += f"\n{heading}\n" + "".join(wrapped("  - ", sentence) for sentence in sentences)
    return text


def wrapped(opening: str, text: str) -> str:
    """Return a text wrapped to the terminal, its first line after ``opening`` and the others below it.

    An opening of more than half of a line is wrapped too, and the others are a little further in than it.
    """
    width = max(60, min(shutil.get_terminal_size((100, 24)).columns, 110))
    if len(opening) > width // 2:
        indent = len(opening) - len(opening.lstrip()) + 4
        return textwrap.fill(opening + text, width, subsequent_indent=" " * indent) + "\n"
    return textwrap.fill(text, width, initial_indent=opening, subsequent_indent=" " * len(opening)) + "\n"

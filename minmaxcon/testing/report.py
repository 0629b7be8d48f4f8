"""Findings of checks, and reports of many."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, overload

__all__ = ["CheckFailed", "Finding", "Outcome", "Report"]

Outcome = Literal["passed", "failed", "skipped"]

_WIDTH = 110
_PAGES = "Pages are those of the documentation: docs/ in the source, or docs/_build/html after `make docs`."


class CheckFailed(AssertionError):
    """A plug-in does not do what the theory needs; the message is the report's text.

    An AssertionError, so that a test runner counts it as a failure of the object under test; no
    :class:`~minmaxcon.MinMaxConError`, since nothing was asked for that cannot be had.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.testing import check_generator
    >>> check_generator(mm.Ball(2, 1.0)).raise_if_failed()  # raises CheckFailed if a check failed
    """


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes
    ----------
    subject : str
        What was checked: a function's name, ``primal``, ``oracle``, ...
    check : str
        Name of the check.
    status : {"passed", "failed", "skipped"}
        How it ended.
    expected : str
        What the theory needs, one sentence.
    seen : str
        What was seen instead; how far it was tried where it passed; the reason where it was skipped.
    counterexample : str
        Numbers that show the failure, small enough to read; empty unless it failed.
    page : str
        The page of the documentation that explains it, relative to its root: ``docs/`` in the source, built by
        ``make docs``.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.testing import check_generator
    >>> finding = check_generator(mm.Ball(2, 1.0))[0]
    >>> finding.check, finding.status
    ('contains', 'passed')
    """

    subject: str
    check: str
    status: Outcome
    expected: str
    seen: str
    counterexample: str
    page: str

    def __str__(self) -> str:
        """Return the finding as aligned lines."""
        head = f"{self.status.upper()}  {self.subject}: {self.check}"
        rows = {"expected": self.expected, "seen": self.seen, "example": self.counterexample, "see": self.page}
        lines = [_labelled(f"  {label:9} ", text) for label, text in rows.items() if text]
        return "\n".join([head, *lines])


def _labelled(opening: str, text: str) -> str:
    return textwrap.fill(" ".join(text.split()), _WIDTH, initial_indent=opening, subsequent_indent=" " * len(opening))


@dataclass(frozen=True)
class Report(Sequence[Finding]):
    """The findings of a suite of checks, in the order in which they ran.

    Attributes
    ----------
    title : str
        What was checked.
    findings : tuple of Finding
        One for each check and subject.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.testing import check_generator
    >>> report = check_generator(mm.Ball(2, 1.0))
    >>> report.passed, len(report.failures)
    (True, 0)
    """

    title: str
    findings: tuple[Finding, ...]

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, index: int | slice) -> Finding | tuple[Finding, ...]:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def having(self, status: Outcome) -> tuple[Finding, ...]:
        """Return the findings of one status."""
        return tuple(finding for finding in self.findings if finding.status == status)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that failed."""
        return self.having("failed")

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def raise_if_failed(self) -> None:
        """Raise if a check failed.

        Raises
        ------
        CheckFailed
            With the failures as its message.
        """
        if self.failures:
            raise CheckFailed("\n\n".join([self.summary, *map(str, self.failures), _PAGES]))

    @property
    def summary(self) -> str:
        """One line: how many checks ended how."""
        counts = ((name, len(self.having(name))) for name in ("failed", "skipped"))
        more = "".join(f", {count} {name}" for name, count in counts if count)
        return f"{self.title}: {len(self.having('passed'))} checks passed{more}."

    def __str__(self) -> str:
        """Return the report: failures in full, then every subject with what was tried, or why it was not."""
        blocks = [self.summary, *map(str, self.failures)] + [_PAGES] * bool(self.failures)
        width = max((len(finding.check) for finding in self.findings), default=0)
        for subject in dict.fromkeys(finding.subject for finding in self.findings):
            lines = [subject]
            for finding in self.findings:
                if finding.subject == subject:
                    tried = "see above" if finding.status == "failed" else finding.seen or "-"
                    lines.append(_labelled(f"  {finding.status:7}  {finding.check:{width}}  ", tried))
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return {"title": self.title, "passed": self.passed, "findings": [asdict(finding) for finding in self.findings]}

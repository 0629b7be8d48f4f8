"""Lines of a text file, compressed or not, within a fixed memory, and how messages name files, rows and lines.

A file is data from anywhere, so each line is read up to a limit and no further: a line of 200 MB, or a small
compressed file that unpacks to one, is refused after the first megabyte.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from minmaxcon.checks import file_path
from minmaxcon.errors import DataError

__all__ = [
    "MAX_LINE",
    "MAX_RATIO",
    "bounded_lines",
    "cause_of",
    "check_ratio",
    "existing_file",
    "place",
    "shown",
    "source_name",
]

MAX_LINE = 2**20
"""Longest line that is read, in bytes."""

MAX_RATIO = 200
"""How many times as large as its file a table may be: texts of numbers pack by a factor of 3 to 20, seldom by 100."""

_LINE = 20
"""Bytes that a line counts as at least, since a short one takes as long."""

_SMALL = 2**13
"""A packed file counts as at least so long: so much of it is read at once."""

_BEGINNING = 2**16
"""Packed bytes that are looked at beforehand, and unpacked ones at a time."""

_GZIP_MAGIC = b"\x1f\x8b"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
_OTHER_UNICODE = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
"""How text in UTF-16 or UTF-32 begins."""


def shown(value: object, width: int = 60) -> str:
    """Return a value as it can stand in a message of one line: ``repr``, cut to ``width`` characters."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


def place(row: int, line: int | None) -> str:
    """Return "row 7 (line 8)": the data row counted from 1 and, where known, the line of the file."""
    return f"row {row}" if line is None else f"row {row} (line {line})"


def source_name(path: str | Path) -> str:
    """Return a path as messages name it: as it is, or quoted where it is empty or would break a line."""
    text = str(path)
    return text if text and text.isprintable() else repr(text)


def existing_file(path: str | Path) -> Path:
    """Return the path of a regular file.

    Raises
    ------
    InvalidInput
        It is no path.
    DataError
        Nothing is there, or it is a directory or a device.
    """
    file = file_path("path", path)
    if not str(path):
        raise DataError(source_name(path), "an empty text is no path; name a data file.")
    try:
        found, regular = file.exists(), file.is_file()
    except (OSError, ValueError) as failure:
        raise DataError(source_name(path), f"this path cannot be used ({cause_of(failure)}); check it.") from failure
    if not found:
        raise DataError(source_name(path), "no such file; check the path.")
    if not regular:
        raise DataError(source_name(path), "is not a regular file; give the path of one data file.")
    return file


def cause_of(failure: Exception) -> str:
    """Return what the system or another library said: on one line, at most 120 characters."""
    text = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
    return " ".join(text.split())[:120]


def check_ratio(source: str, size: float, packed: int) -> None:
    """Refuse a file that unpacks to so much more than it is that it was made to waste memory and time."""
    if size > MAX_RATIO * max(packed, 1):
        need = f"unpacks to more than {MAX_RATIO} times its size, as no table of data does"
        raise DataError(source, f"{need}; if it is right, write its rows with sample weights, each kind of row once.")


def _check_beginning(source: str, raw: BinaryIO) -> None:
    """Count the lines that the first bytes unpack to, before any is taken apart: that takes a hundred times as long."""
    raw.seek(0)
    lines = 0
    with suppress(*_DAMAGED), gzip.GzipFile(fileobj=raw) as stream:
        while raw.tell() <= _BEGINNING and (block := stream.read(_BEGINNING)):
            lines += block.count(b"\n")
            check_ratio(source, _LINE * lines, max(raw.tell(), _SMALL))


def bounded_lines(path: str | Path, *, max_bytes: int = MAX_LINE) -> Iterator[tuple[int, bytes]]:
    """Yield the number, from 1, and the bytes of each line, its end included; gzip is recognised by its content.

    Memory stays below a small multiple of ``max_bytes``. DataError, with the line, for no such file, a line longer than
    ``max_bytes``, a NUL byte, or damaged compressed data.
    """
    file, source = existing_file(path), source_name(path)
    number = 0
    try:
        with file.open("rb") as raw:
            compressed = raw.read(2) == _GZIP_MAGIC
            if compressed:
                _check_beginning(source, raw)
            raw.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if compressed else raw
            size = 0
            while line := stream.readline(max_bytes + 1):
                number += 1
                size += len(line)
                if compressed and number % 1000 == 0:
                    check_ratio(source, max(size, _LINE * number), max(raw.tell(), _SMALL))
                if len(line) > max_bytes:
                    raise DataError(
                        source, f"line {number} is longer than {max_bytes:,} bytes; this is not a table of numbers."
                    )
                if number == 1 and line.startswith(_OTHER_UNICODE):
                    raise DataError(source, "is UTF-16 or UTF-32 text; export the file as UTF-8.")
                if b"\0" in line:
                    raise DataError(
                        source,
                        f"line {number} contains a NUL byte; this is a binary file or UTF-16, export it as UTF-8 text.",
                    )
                yield number, line
    except _DAMAGED as failure:
        raise DataError(
            source, f"the compressed data are damaged after line {number} ({cause_of(failure)}); copy the file again."
        ) from failure
    except OSError as failure:
        raise DataError(source, f"cannot be read ({cause_of(failure)}); check the file.") from failure

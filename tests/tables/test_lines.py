"""Lines of a file: their numbers, their limits, and how messages name what was read."""

from __future__ import annotations

import errno
import gzip
import os
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

from minmaxcon.errors import DataError
from minmaxcon.tables import existing_file, lines, shown, source_name
from minmaxcon.tables.lines import bounded_lines, cause_of, check_ratio, place

from .files import written


def test_a_value_is_shown_up_to_its_width() -> None:
    """A text of n letters takes n + 2 characters, with its quotes."""
    assert shown("x" * 58) == repr("x" * 58)
    assert shown("x" * 59) == "'" + "x" * 56 + "..."
    assert shown("x" * 8, 10) == "'xxxxxxxx'"
    assert shown("x" * 9, 10) == "'xxxxxx..."
    assert shown("two\nlines") == r"'two\nlines'"


def test_places_and_sources_are_named_in_one_line() -> None:
    assert place(7, None) == "row 7"
    assert place(7, 8) == "row 7 (line 8)"
    named = {"": "''", "a.csv": "a.csv", "a\nb": r"'a\nb'", "a b": "a b"}
    assert {path: source_name(path) for path in named} == named
    assert source_name(Path("a/b.csv")) == "a/b.csv"


@pytest.mark.parametrize(
    "path, said",
    [
        ("", "'': an empty text is no path; name a data file."),
        ("absent", "absent: no such file; check the path."),
        (".", ".: is not a regular file; give the path of one data file."),
        ("x" * 300, f"{'x' * 300}: this path cannot be used ({os.strerror(errno.ENAMETOOLONG)}); check it."),
    ],
)
def test_a_path_without_a_file_is_told(path: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        existing_file(path)
    assert str(caught.value) == said


@pytest.mark.parametrize("packed", [False, True])
def test_lines_have_numbers_from_one_and_keep_their_ends(packed: bool, tmp_path: Path) -> None:
    content = b"a\r\n\nb \nc"
    path = written(tmp_path, gzip.compress(content) if packed else content)
    assert list(bounded_lines(path)) == [(1, b"a\r\n"), (2, b"\n"), (3, b"b \n"), (4, b"c")]


@pytest.mark.parametrize(
    "content, said",
    [
        (b"12345678\n123456789\n", r"line 2 is longer than 9 bytes"),
        (b"123456789", None),
        (b"1234567890", r"line 1 is longer than 9 bytes"),
        (b"a\nb\n\0\n", r"line 3 contains a NUL byte"),
        ("a\n".encode("utf-16"), r"is UTF-16 or UTF-32 text"),
        (b"\xfe\xffa", r"is UTF-16 or UTF-32 text"),
        ("a".encode("utf-32"), r"is UTF-16 or UTF-32 text"),
        (b"a\n\xff\xfe\n", None),
    ],
)
def test_a_line_that_is_no_text_or_too_long_is_told_by_its_number(
    content: bytes, said: str | None, tmp_path: Path
) -> None:
    path = written(tmp_path, content)
    if said is None:
        assert b"".join(line for _, line in bounded_lines(path, max_bytes=9)) == content
    else:
        with pytest.raises(DataError, match=said):
            list(bounded_lines(path, max_bytes=9))


def test_damaged_data_are_told_after_the_last_line_that_was_read(tmp_path: Path) -> None:
    """Two members, of which the second ends too early: the three lines of the first are read."""
    path = written(tmp_path, gzip.compress(b"a\nb\nc\n") + gzip.compress(b"d\n" * 9)[:-4])
    found = list[int]()
    with pytest.raises(DataError, match=r"the compressed data are damaged after line 12 \(.*\); copy the file again"):
        found.extend(number for number, _ in bounded_lines(path))
    whole = gzip.compress(b"a\nb\nc\n")
    for number, content in ((0, whole[:9]), (3, whole + b"\x1f\x8b\x08wrong"), (3, whole[:-8] + bytes(8))):
        with pytest.raises(DataError, match=rf"damaged after line {number} \([^\n]+\)"):
            list(bounded_lines(written(tmp_path, content)))


def test_data_that_are_damaged_further_on_are_read_so_far(tmp_path: Path) -> None:
    """A block of no known type, after more lines than are unpacked at a time."""
    packer = zlib.compressobj(wbits=31)
    path = written(tmp_path, packer.compress(b"x\n" * 20_000) + packer.flush(zlib.Z_FULL_FLUSH) + b"\xff" * 9)
    found = list[int]()
    with pytest.raises(DataError, match=r"the compressed data are damaged after line \d+ \(.*invalid block type"):
        found.extend(number for number, _ in bounded_lines(path))
    assert len(found) > 10_000


@pytest.mark.parametrize(
    "failure, said",
    [
        (OSError(errno.EIO, "of two\n lines", "file"), "of two lines"),
        (OSError("text alone"), "text alone"),
        (ValueError(), "ValueError"),
        (ValueError("x" * 120), "x" * 120),
        (ValueError("x" * 121), "x" * 120),
    ],
)
def test_a_cause_is_a_short_line(failure: Exception, said: str) -> None:
    assert cause_of(failure) == said


def test_what_the_system_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, b"a\n")

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EIO, "of two\nlines")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError) as caught:
        list(bounded_lines(path))
    assert str(caught.value) == f"{path}: cannot be read (of two lines); check the file."


def test_a_table_may_be_two_hundred_times_its_file() -> None:
    check_ratio("s", 2000.0, 10)
    check_ratio("s", 200.0, 0)
    for size, packed in ((2001.0, 10), (201.0, 0)):
        with pytest.raises(DataError, match="s: unpacks to more than 200 times its size"):
            check_ratio("s", size, packed)


def short_lines(count: int) -> bytes:
    """Return a packed file of so many empty lines, of which each counts as 20 bytes."""
    return gzip.compress(b"\n" * count)


def test_a_packed_file_counts_as_eight_kibibytes_at_least(tmp_path: Path) -> None:
    """So 200 * 8192 / 20 = 81,920 empty lines are read."""
    assert sum(1 for _ in bounded_lines(written(tmp_path, short_lines(81_920)))) == 81_920
    with pytest.raises(DataError, match="unpacks to more than 200 times"):
        next(bounded_lines(written(tmp_path, short_lines(81_921))))


def test_the_beginning_of_a_packed_file_is_looked_at_before_any_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To its end where it is just as long as the beginning; from there on line by line."""
    content = short_lines(200_000)
    path = written(tmp_path, content)
    monkeypatch.setattr(lines, "_BEGINNING", len(content))
    with pytest.raises(DataError, match=f"^{path}: unpacks to more than 200 times"):
        next(bounded_lines(path))
    monkeypatch.setattr(lines, "_BEGINNING", len(content) - 1)
    read = bounded_lines(path)
    assert next(read) == (1, b"\n")
    numbers = [1]
    with pytest.raises(DataError, match="unpacks to more than 200 times"):
        numbers.extend(number for number, _ in read)
    assert (
        numbers[-1] == 81_999
    )  # after each thousand lines their bytes are looked at, and those of 82,000 are too many


def test_long_lines_count_by_their_bytes(tmp_path: Path) -> None:
    """A thousand lines of 1,700 equal bytes are more than 200 * 8192, and of 1,600 less; 999 are not looked at."""
    for width, count, refused in ((1700, 1000, True), (1600, 1000, False), (1700, 999, False)):
        path = written(tmp_path, gzip.compress((b"x" * (width - 1) + b"\n") * count))
        assert path.stat().st_size < 8192
        if refused:
            with pytest.raises(DataError, match=f"^{path}: unpacks to more than 200 times"):
                list(bounded_lines(path))
        else:
            assert sum(1 for _ in bounded_lines(path)) == count


def test_what_is_not_packed_has_no_ratio(tmp_path: Path) -> None:
    assert sum(1 for _ in bounded_lines(written(tmp_path, b"\n" * 100_000))) == 100_000


def test_a_large_packed_file_is_read_to_its_end(tmp_path: Path) -> None:
    """Digits at random, packed in more than the beginning, of which no line is lost."""
    digits = random.Random(0).randbytes(100_000).hex().encode()
    content = b"\n".join(digits[k : k + 100] for k in range(0, len(digits), 100))
    path = written(tmp_path, gzip.compress(content))
    assert path.stat().st_size > 2**16
    assert b"".join(line for _, line in bounded_lines(path)) == content

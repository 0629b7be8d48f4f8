"""Good files of every format, drawn by Hypothesis, and changes of bytes and of JSON that spoil them.

Where a format has a digest or lengths, these are made anew after the change, so that what is behind them is tried too.
"""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from minmaxcon.results import model_bytes

Files = st.SearchStrategy[bytes]

TOKENS = (b"\0", b"\n", b'"', b",", b":", b"1e999", b"nan", b"-", b"[", b"{", b"\xff", b"\r", b"#", b"\xef\xbb\xbf")

Edit = tuple[int, int, int, bytes]


def edits(most: int = 4) -> st.SearchStrategy[list[Edit]]:
    """Draw changes of bytes: kind, place, size, and what is put there."""
    new = st.sampled_from(TOKENS) | st.binary(min_size=1, max_size=8)
    sizes = st.sampled_from([1, 2, 8, 40])
    return st.just([]) | st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**14), sizes, new), max_size=most)


def changed(content: bytes, changes: Sequence[Edit]) -> bytes:
    """Replace, cut, repeat, put in or move some bytes."""
    found = bytearray(content)
    for kind, where, size, new in changes:
        place = where % (len(found) + 1)
        if kind == 0:
            found[place : place + len(new)] = new
        elif kind == 1:
            del found[place : place + size]
        elif kind == 2:
            found[place:place] = found[place : place + size] * (1 + where % 200)
        elif kind == 3:
            found[place:place] = new
        else:
            other = (where * 31 + size) % (len(found) + 1)
            found[place:place] = found[other : other + size]
    return bytes(found)


@st.composite
def spoilt(draw: Callable[..., Any], files: Files) -> bytes:
    """Draw a file and change its bytes."""
    return changed(draw(files), draw(edits()))


@st.composite
def packed(draw: Callable[..., Any], files: Files) -> bytes:
    """Draw a file packed by gzip, changed before or after that."""
    return changed(gzip.compress(draw(files), mtime=0), draw(edits(2)))


# ---------------------------------------------------------------------------------------------------------- JSON

SMALL = st.sampled_from(
    [0, 1, -1, 2, 3, 2**31, 2**63, -(2**70), 0.5, -0.0, 1e308, 5e-324, "", "x", "float", True, None]
)
VALUES = st.recursive(
    SMALL | st.text(max_size=4) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all parts of a tree of JSON."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(each for key, part in inner for each in places(part, (*path, key)))]


@st.composite
def replanted(draw: Callable[..., Any], tree: Any, *, most: int = 3) -> Any:
    """Draw a tree of JSON in which parts are another value, another part, or absent."""
    found = copy.deepcopy(tree)
    for _ in range(draw(st.integers(0, most))):
        path = draw(st.sampled_from(places(found)))
        other = copy.deepcopy(part_of(found, draw(st.sampled_from(places(found)))))
        value = draw(VALUES | st.just(other))
        if not path:
            found = value
            continue
        parent = part_of(found, path[:-1])
        if draw(st.booleans()):
            parent[path[-1]] = value
        else:
            del parent[path[-1]]
    return found


def part_of(tree: Any, path: Sequence[Any]) -> Any:
    """Return a part of a tree of JSON."""
    for key in path:
        tree = tree[key]
    return tree


# -------------------------------------------------------------------------------------------------------- tables

NAMES = st.sampled_from(["x", "y", "who", "z", "x", "", " x", "1", "é", 'q"', "a,b"])
CELLS = st.sampled_from(
    [
        *("", "1", "0", "-2.5e3", ".5", "1.", "1e999", "-inf", "nan", "NA", "#N/A", "1_000", "007", "0x10", "+1", "1e"),
        *(
            "a",
            "b",
            "yes",
            "é",
            "True",
            "  ",
            " 1 ",
            "1,5",
            "x\ny",
            'q"q',
            "\ufeff",
            "\x85",
            "\x1b[31m",
            "٣",
            "9" * 400,
        ),
    ]
) | st.text(max_size=4)


@st.composite
def csv_texts(draw: Callable[..., Any]) -> bytes:
    """Draw a CSV file: any delimiter, quotes, ends of lines and marks."""
    names = draw(st.just(["x", "who", "y"]) | st.lists(NAMES, min_size=1, max_size=4))
    widths = draw(st.sampled_from([*[st.just(len(names))] * 3, st.integers(0, 5)]))
    rows = draw(st.lists(widths.flatmap(lambda width: st.lists(CELLS, min_size=width, max_size=width)), max_size=6))
    text = io.StringIO(newline="")
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    ends = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
    writer = csv.writer(text, delimiter=draw(st.sampled_from(",;\t")), quoting=quoting, lineterminator=ends)
    writer.writerows([names, *rows])
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    return (mark + text.getvalue()).encode(draw(st.sampled_from([*["utf-8"] * 6, "utf-16", "latin-1"])), "replace")


TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.float64(), st.floats()),
    (pa.float32(), st.floats(width=32)),
    (pa.float16(), st.floats(width=16).map(np.float16)),
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.bool_(), st.booleans()),
    (pa.string(), CELLS),
    (pa.large_string(), CELLS),
    (pa.string_view(), CELLS),
    (pa.dictionary(pa.int8(), pa.string()), CELLS),
    (pa.dictionary(pa.int32(), pa.float64()), st.floats()),
    (pa.binary(), st.binary(max_size=4)),
    (pa.null(), st.none()),
    (pa.decimal128(9, 2), st.integers(-999, 999).map(lambda cents: Decimal(cents) / 100)),
    (pa.timestamp("ns"), st.integers(-(2**62), 2**62)),
    (pa.date32(), st.integers(-1000, 1000)),
    (pa.time64("us"), st.integers(0, 86_399_999_999)),
    (pa.list_(pa.int8()), st.lists(st.integers(0, 9), max_size=2)),
    (pa.struct([("x", pa.int8())]), st.fixed_dictionaries({"x": st.integers(0, 9)})),
    (pa.map_(pa.string(), pa.int8()), st.lists(st.tuples(st.text(max_size=2), st.integers(0, 9)), max_size=2)),
]


@st.composite
def tables(draw: Callable[..., Any]) -> pa.Table:
    """Draw a table of Arrow of any types."""
    rows, columns = draw(st.integers(0, 5)), list[Any]()
    for _ in range(draw(st.integers(1, 4))):
        kind, values = draw(st.sampled_from(TYPES))
        cells = draw(st.lists(values | st.none(), min_size=rows, max_size=rows))
        columns.append(pa.array(cells, kind))
    names = draw(st.lists(NAMES, min_size=len(columns), max_size=len(columns)))
    return pa.table(columns, names=["x", "who", "y", "z"][: len(columns)] if draw(st.booleans()) else names)


@st.composite
def parquet_files(draw: Callable[..., Any]) -> bytes:
    """Draw a Parquet file, packed and cut into groups in any way."""
    table, content = draw(tables()), io.BytesIO()
    options = {
        "compression": draw(st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli"])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "use_dictionary": draw(st.booleans()),
        "row_group_size": draw(st.integers(1, 4)),
        "write_page_checksum": draw(st.booleans()),
    }
    try:
        pq.write_table(table, content, **options)
    except (pa.ArrowException, ValueError):  # it does not write every type
        pq.write_table(pa.table({"x": [0.5, None], "who": ["a", "b"], "y": [1, 0]}), content := io.BytesIO(), **options)
    return content.getvalue()


@st.composite
def arrow_files(draw: Callable[..., Any]) -> bytes:
    """Draw a file of Arrow's own format."""
    table, content = draw(tables()), io.BytesIO()
    with pa.ipc.new_file(content, table.schema) as writer:
        writer.write_table(table, max_chunksize=draw(st.integers(1, 4)))
    return content.getvalue()


LIBSVM_TOKENS = st.sampled_from(
    [
        *("1:0.5", "3:2", "2:1e-3", "1:1", "7:-1", "5:+3", "0:1", "-1:1", "2:nan", "2:1e309", "2:1_0", "99999999999:1"),
        *("16777216:1", "16777217:1", "1:", ":1", "1", "x", "qid:3", "#", "# note", "٣:1", "1:2:3", "9" * 30 + ":1"),
    ]
) | st.tuples(st.integers(0, 9), st.floats()).map(lambda pair: f"{pair[0]}:{pair[1]!r}")
LABELS = st.sampled_from(["1", "-1", "+1", "0", "2.5", "nan", "1e999", "", "yes", "1_0", "1:1", "#"])


@st.composite
def libsvm_texts(draw: Callable[..., Any]) -> bytes:
    """Draw a LIBSVM file."""
    lines = st.tuples(LABELS, st.lists(LIBSVM_TOKENS, max_size=4)).map(lambda line: " ".join([line[0], *line[1]]))
    good = st.sampled_from(["1 1:0.5 3:2", "-1 2:1e-3", "1 1:1 2:1", "-1 1:1"])
    found = draw(st.lists(good | lines, max_size=6))
    return draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"])).join(found).encode()


# ------------------------------------------------------------------------------------------------------- records

DTYPES = st.sampled_from(["f8", "f4", "f2", "i8", "i4", "u1", "?", "u8", ">f8"])


@st.composite
def arrays_like(draw: Callable[..., Any], known: Sequence[Any]) -> list[Any]:
    """Draw arrays, most of them those that are known, others of another type, shape or content."""
    found = list(known)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(found) - 1))
        shape = draw(st.sampled_from([np.shape(found[place]), (), (0,), (1,), (2, 3), (3, 0), (1, 1, 1)]))
        value = draw(st.sampled_from([0.0, 1.0, -1.0, np.nan, np.inf, 1e300]))
        with np.errstate(all="ignore"):
            found[place] = np.full(shape, value).astype(draw(DTYPES))
    return found


@st.composite
def models(draw: Callable[..., Any], arrays: dict[str, Any], description: dict[str, Any]) -> bytes:
    """Draw a model file with a digest that fits: arrays and description may be wrong."""
    told = draw(replanted(description))
    told = told if isinstance(told, dict) else {"problem": told}
    values = draw(arrays_like(list(arrays.values())))
    names = [draw(st.sampled_from([name, name, name, "other", ""])) for name in arrays]
    native = [np.asarray(value, dtype=np.asarray(value).dtype.newbyteorder("=")) for value in values]
    return model_bytes(dict(zip(names, native, strict=True)), told)


@st.composite
def reheaded(draw: Callable[..., Any], content: bytes) -> bytes:
    """Draw a model file whose heading is changed, its length made anew."""
    (size,) = struct.unpack("<Q", content[:8])
    heading = json.dumps(draw(replanted(json.loads(content[8 : 8 + size])))).encode()
    return struct.pack("<Q", len(heading)) + heading + content[8 + size :]


def json_files(tree: Any) -> Files:
    """Draw a file of JSON, of which parts are changed."""
    return replanted(tree).map(lambda found: json.dumps(found).encode())


def of_json(make: Callable[[Any], bytes]) -> Callable[[bytes], bytes]:
    """Return what makes a file of a text of JSON; of no such text, nothing."""

    def content(text: bytes) -> bytes:
        try:
            return make(json.loads(text))
        except (ValueError, RecursionError):  # no JSON, or none that can be written
            return b""

    return content


def with_digest(found: Any) -> bytes:
    """Return the record of a run of a study, with a digest that fits."""
    if isinstance(found, dict):
        text = json.dumps(found, sort_keys=True, separators=(",", ":"))
        found = {**found, "blake2b": blake2b(text.encode(), digest_size=16).hexdigest()}
    return json.dumps(found).encode()


def described(arrays: dict[str, Any]) -> Callable[[bytes], bytes]:
    """Return what makes a model file of the text of its description, with a digest that fits."""
    return of_json(lambda told: model_bytes(arrays, told if isinstance(told, dict) else {"problem": told}))


@st.composite
def checkpoints(draw: Callable[..., Any], content: bytes) -> bytes:
    """Draw a checkpoint with a digest that fits: its manifest and its arrays may be wrong."""
    manifest, held = unsealed(content)
    part = draw(st.sampled_from(["state", "state", "state", ""]))
    told = {**manifest, "state": draw(replanted(manifest["state"]))} if part else draw(replanted(manifest))
    body = manifested(draw(arrays_like(held)) if held else [], json.dumps(told).encode()).partition(b"\n")[2]
    return sealed(changed(body, draw(edits(1))))


def unsealed(content: bytes) -> tuple[Any, list[Any]]:
    """Return the manifest and the arrays of a checkpoint."""
    with np.load(io.BytesIO(content.partition(b"\n")[2])) as archive:
        held = [archive[name] for name in archive.files if name != "manifest"]
        return json.loads(archive["manifest"].tobytes()), held


def manifested(arrays: Sequence[Any], text: bytes) -> bytes:
    """Return the checkpoint of some arrays and the text of a manifest, with a digest that fits."""
    body = io.BytesIO()
    named = {f"array{i}": value for i, value in enumerate(arrays)}
    np.savez(body, manifest=np.frombuffer(text, dtype=np.uint8), **named)
    return sealed(body.getvalue())


def sealed(body: bytes) -> bytes:
    """Put the first line of a checkpoint before its body."""
    return b"minmaxcon-checkpoint 1 " + blake2b(body, digest_size=32).hexdigest().encode() + b"\n" + body

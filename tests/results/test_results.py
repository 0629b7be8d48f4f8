"""Result records: valid JSON whatever the numbers, nothing unknown read back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minmaxcon as mm
from minmaxcon.errors import DataError
from minmaxcon.results import records
from minmaxcon.results.records import CertificateRecord, RunRecord, RunsRecord, plain, read_result, to_json, versions
from tests import cases

CERTIFICATE = CertificateRecord(kind="exact on the data", upper=0.5, lower=None, gap=None, confidence=1.0)


def run_record(**changes: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "status": "solved",
        "feasible": True,
        "objective": 0.5,
        "constraints": [-0.1, None],
        "certificate": CERTIFICATE,
        "train": {"auc": 0.9, "auc_gap": None},
        "steps": 10,
        "seconds": 0.1,
        "settings": {"kappa": 0.1},
        "versions": {"minmaxcon": "0"},
        "reason": "It is so.",
    }
    return RunRecord(**(fields | changes))


# Whatever JSON escapes or has no sign for; tables of all of Unicode take seconds to make.
TEXTS = st.text(st.sampled_from("aZ0'\"\\/{}[]:, \n\r\t\b\f\x00\x1f\x7f\x85é€\u2028\ufeff\uffff\U0001f600"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=True, allow_infinity=True) | TEXTS | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=10,
)


@given(VALUES)
def test_whatever_the_numbers_the_text_is_json(value: Any) -> None:
    json.loads(to_json({"value": value}), parse_constant=pytest.fail)


def test_numpy_values_and_paths_become_plain() -> None:
    found = plain(
        {"a": np.float32(0.5), "b": np.array([[1, 2]]), "c": (np.inf, math.nan), "d": Path("x"), 3: np.bool_(True)}
    )
    assert found == {"a": 0.5, "b": [[1, 2]], "c": [None, None], "d": "x", "3": True}
    assert type(found["3"]) is bool


def test_absent_parts_are_left_out_and_unknown_numbers_stay() -> None:
    found = json.loads(to_json(run_record()))
    assert "test" not in found
    assert "validation" not in found
    assert found["train"] == {"auc": 0.9, "auc_gap": None}
    assert found["certificate"]["lower"] is None


@pytest.mark.parametrize(
    "record",
    [run_record(), RunsRecord(runs=[run_record()], steps=1, seconds=0.0, settings={}, versions={"minmaxcon": "0"})],
)
def test_a_result_reads_back(tmp_path: Path, record: RunRecord | RunsRecord) -> None:
    (tmp_path / "result.json").write_text(to_json(record))
    assert read_result(tmp_path) == record


@pytest.mark.parametrize(
    "text,words",
    [
        ("{}", "status"),
        ("[]", "is no result"),
        ("\x00", "is no result"),
        (to_json({**run_record().model_dump(), "surprise": 1}), "surprise"),
        (to_json({**run_record().model_dump(), "feasible": "perhaps"}), "feasible"),
    ],
)
def test_what_is_no_result_is_refused_by_field(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(DataError, match=words):
        read_result(tmp_path)


def test_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"result\.json: cannot be read"):
        read_result(tmp_path)


def test_solved_needs_feasibility_too() -> None:
    assert run_record().solved
    assert not run_record(feasible=False).solved
    assert not run_record(status="budget").solved
    several = {"steps": 1, "seconds": 0.0, "settings": {}, "versions": {}}
    assert not RunsRecord(runs=[run_record(), run_record(status="budget")], **several).solved


def test_versions_name_what_bits_depend_on() -> None:
    found = versions()
    assert found["numpy"] == np.__version__
    assert found["threads"] >= 1
    assert isinstance(found["cpu_dispatch"], list)


def test_a_result_is_read_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "result.json").write_text(to_json(run_record()))
    size = (tmp_path / "result.json").stat().st_size
    monkeypatch.setattr(records, "_LARGEST", size)
    assert read_result(tmp_path) == run_record()
    monkeypatch.setattr(records, "_LARGEST", size - 1)
    with pytest.raises(DataError, match="larger than any result"):
        read_result(tmp_path)


def test_rows_are_text_that_reads_back_and_intervals_have_four_digits() -> None:
    rows = [{"a": 0.1 + 0.2, "b": None, "c": "x,y"}, {"a": math.nan, "b": True, "c": ""}]
    assert records.csv_text(rows) == f'a,b,c\n{0.1 + 0.2!r},,"x,y"\n,1,\n'
    assert records.csv_text([]) == ""
    assert records.interval_text({"auc": 0.25, "auc_interval": (0.125, 0.5)}, "auc") == "0.2500 [0.1250, 0.5000]"
    assert records.interval_text({"auc": 0.25, "auc_interval": (None, 0.5)}, "auc") == "0.2500"
    assert records.interval_text({"auc": 0.25}, "auc") == "0.2500"
    assert records.interval_text({}, "auc") == "undefined"


@pytest.mark.parametrize("plugin", [None, "tells nothing", "tells all"])
def test_values_are_those_of_the_plug_in_where_it_tells_them(plugin: str | None) -> None:
    problem = cases.quadratic()
    found = mm.solve(problem, mm.SFLS(mm.MirrorProx(steps=20), levels=2), seed=0)
    told = {"objective": 2.5, "values": [0.75], "note": "n"} if plugin == "tells all" else {"note": "n"}
    asked = list[Any]()

    def evaluate(about: Any, x: Any) -> Any:
        asked.append((about, x))
        return told

    given: Any = None if plugin is None else SimpleNamespace(evaluate=evaluate)
    (measured,) = records.measure(given, problem, found)
    if plugin == "tells all":
        assert measured == {**told, "constraints": [0.25], "recomputed": True}
    else:
        own = {"objective": found.objective, "constraints": found.constraints.tolist(), "recomputed": False}
        assert measured == own | ({} if plugin is None else told)
    for about, x in asked:
        assert about is problem
        assert x is not found.x  # a copy, which the plug-in may write into
        assert x.tolist() == found.x.tolist()
    assert len(asked) == (plugin is not None)

"""Result records: valid JSON whatever the numbers, nothing unknown read back."""

from __future__ import annotations

import json
import math
import os
import platform
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

import minmaxcon as mm
from minmaxcon import core
from minmaxcon.errors import DataError
from minmaxcon.files import installed_version
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
    assert RunsRecord(runs=[run_record(), run_record()], **several).solved


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


def solution(**changes: Any) -> mm.Solution:
    """Return a solution of one run, made by hand."""
    evidence = core.Evidence(
        weights=np.array([[0.25, 0.75]]),
        scaled=np.array([[0.5]]),
        near=np.array([[1.0, 2.0]]),
        first=np.array([[3.0, 4.0]]),
        neighbour=core.Neighbour(np.array([2.0]), np.array([[5.0, 6.0]]), np.array([0.125])),
        linear=core.Linearised(np.array([[7.0]]), np.array([0.0625])),
    )
    fields: dict[str, Any] = {
        "x": np.array([1.5, 2.5]),
        "objective": 0.5,
        "constraints": np.array([-0.25, 0.0]),
        "status": mm.Status.SOLVED,
        "certificate": mm.Certificate("exact on the data", 0.5, 0.375, 1.0),
        "reason": "It is so.",
        "trace": {},
        "steps": 10,
        "samples": 20,
        "seconds": 1.25,
        "settings": {"solver": {"levels": 3}, "seed": 1},
        "evidence": evidence,
    }
    return mm.Solution(**(fields | changes))


MEASURED = {"objective": 0.625, "constraints": [-0.5, -0.125], "recomputed": True}


def recorded(measured: Any = MEASURED, **changes: Any) -> RunRecord:
    return records.record(measured, solution(**changes), {"kappa": 0.1}, ["a note"])


def test_a_record_holds_what_was_measured_and_what_the_solver_told() -> None:
    part = {"auc": np.float64(0.9), "gap": math.nan}
    found = recorded({**MEASURED, "train": part, "test": {**part, "auc": 0.8}, "values": [0.0, 0.0]})
    assert found.model_dump(exclude={"versions", "evidence"}) == {
        "status": "solved",
        "feasible": True,
        "objective": 0.625,
        "constraints": [-0.5, -0.125],
        "certificate": {"kind": "exact on the data", "upper": 0.5, "lower": 0.375, "gap": 0.125, "confidence": 1.0},
        "train": {"auc": 0.9, "gap": None},
        "validation": None,
        "test": {"auc": 0.8, "gap": None},
        "steps": 10,
        "seconds": 1.25,
        "settings": {"kappa": 0.1, "solver_settings": {"levels": 3}},
        "reason": "It is so.",
        "notes": ["a note"],
        "recomputed": True,
    }
    assert found.versions == versions()
    assert json.loads(to_json(found)).keys() == {*found.model_dump()} - {"validation"}
    own = {"objective": math.nan, "constraints": [-0.5, math.nan], "recomputed": False}
    found = records.record(own, solution(settings={}), {})
    assert (found.objective, found.constraints, found.recomputed, found.notes) == (None, [-0.5, None], False, [])
    assert found.settings == {"solver_settings": None}


@pytest.mark.parametrize("violation, feasible", [(1e-9, True), (1.1e-9, False), (math.nan, False)])
@pytest.mark.parametrize("place", [0, 1])
def test_a_point_is_feasible_up_to_rounding(violation: float, feasible: bool, place: int) -> None:
    """What the solver calls solved is not, where the plug-in measures a violation, or no number."""
    for status in (mm.Status.SOLVED, mm.Status.INTERRUPTED):
        values = [-0.5, violation] if place else [violation, -0.5]
        found = recorded({**MEASURED, "constraints": values}, status=status)
        assert found.feasible == feasible
        lowered = status is mm.Status.SOLVED and not feasible
        assert found.status == ("budget" if lowered else str(status))
        assert found.solved == (feasible and status is mm.Status.SOLVED)
        how = "is no number" if math.isnan(violation) else f"is violated by {violation:.3g}"
        more = f" But measured again outside the solver a constraint {how}."
        assert found.reason == "It is so." + more * lowered


def test_bounds_that_are_not_known_are_none() -> None:
    found = recorded(certificate=mm.Certificate("none", math.inf, -math.inf, 0.0)).certificate
    assert found.model_dump() == {"kind": "none", "upper": None, "lower": None, "gap": None, "confidence": 0.0}


def test_evidence_is_recorded_where_something_rests_on_it() -> None:
    whole: Any = solution().evidence
    multipliers = {"weights": [0.25, 0.75], "scaled": [0.5], "near": [1.0, 2.0]}
    first = {"first": [3.0, 4.0]}
    claims = {
        "proximal": {"weight": 2.0, "point": [5.0, 6.0], "distance": 0.125},
        "linear": {"multipliers": [7.0], "fall": 0.0625},
    }
    none: dict[str, Any] = {}
    unknown = core.Evidence(*(np.full((1, size), np.nan) for size in (2, 1, 2)), first=np.array([[np.nan, 0.0]]))
    streamed = mm.Certificate("with confidence", 0.5, 0.375, 0.9)
    cases_: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, multipliers | first | claims),
        ({"status": mm.Status.INTERRUPTED}, multipliers | first),  # nothing is claimed of a run that is not solved
        ({"evidence": None}, none),
        ({"evidence": unknown}, none),
        ({"evidence": replace(whole, first=None, neighbour=None, linear=None)}, multipliers),
        (
            {"evidence": replace(whole, neighbour=core.Neighbour.none(1, 2), linear=core.Linearised.none(1, 1))},
            multipliers | first,
        ),
        (
            {"evidence": replace(whole, neighbour=replace(whole.neighbour, distance=np.array([np.nan])))},
            multipliers | first | {"linear": claims["linear"]},
        ),
        ({"evidence": None, "certificate": streamed}, {"samples": 20}),
        ({"evidence": None, "certificate": replace(streamed, kind="estimate")}, {"samples": 20}),
        ({"certificate": streamed}, multipliers | first | claims | {"samples": 20}),
    ]
    for changes, expected in cases_:
        found = recorded(**changes).evidence
        assert found is not None
        assert found.model_dump(exclude_none=True) == {"x": [1.5, 2.5], **expected}
        assert json.loads(to_json(recorded(**changes)))["evidence"] == {"x": [1.5, 2.5], **expected}


@pytest.mark.parametrize(
    "kind, lower, upper, said",
    [
        ("exact on the data", 0.125, 0.5, "0.125 <= f* <= 0.5, gap 0.375, exact on the data"),
        ("exact on the data", 0.1234567, 1 / 3, "0.123457 <= f* <= 0.333333, gap 0.21, exact on the data"),
        ("exact on the data", None, 0.5, "no lower bound, f* <= 0.5, exact on the data"),
        ("exact on the data", 0.125, None, "0.125 <= f*, no upper bound, exact on the data"),
        ("none", None, None, "no lower bound, no upper bound"),
    ],
)
def test_a_certificate_in_words(kind: str, lower: float | None, upper: float | None, said: str) -> None:
    gap = None if lower is None or upper is None else upper - lower
    bounds = CertificateRecord(kind=kind, lower=lower, upper=upper, gap=gap, confidence=1.0)
    assert records.certificate_text(run_record(certificate=bounds)) == said


def test_values_become_plain_by_their_kind() -> None:
    value = [
        None,
        True,
        "a",
        2**70,
        0.5,
        -math.inf,
        (1, [2.5]),
        {1: {"a": math.nan}},
        np.int64(3),
        np.zeros((1, 2)),
        1j,
    ]
    expected = [None, True, "a", 2**70, 0.5, None, [1, [2.5]], {"1": {"a": None}}, 3, [[0.0, 0.0]], "1j"]
    assert plain(value) == expected
    assert list(map(type, plain(value))) == list(map(type, expected))


def test_texts_of_json_are_laid_out_and_end_with_a_line_end() -> None:
    assert to_json({"a": [1, {"test": None, "b": None}], "train": 0, "x": None}) == (
        '{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "train": 0\n}\n'
    )
    assert to_json([]) == "[]\n"


def test_the_versions_are_those_that_are_installed() -> None:
    found = versions()
    packages = ("minmaxcon", "numpy", "scipy", "torch")
    assert {name: found[name] for name in packages} == {name: metadata.version(name) for name in packages}
    assert (found["python"], found["machine"]) == (platform.python_version(), platform.machine())
    assert list(found) == ["minmaxcon", "python", "numpy", "scipy", "torch", "threads", "machine", "cpu_dispatch"]
    assert found["threads"] == max(pool["num_threads"] for pool in threadpool_info())
    assert set(found["cpu_dispatch"]) <= set(np._core._multiarray_umath.__cpu_dispatch__)  # type: ignore[attr-defined]


def test_a_package_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_version("no-such-package-of-minmaxcon") is None
    monkeypatch.setattr(records, "installed_version", lambda name: None if name == "torch" else "1.2.3")
    monkeypatch.setattr(records, "threadpool_info", list)
    monkeypatch.setattr(records.np, "show_config", lambda **_: None)
    found = versions()
    assert (found["torch"], found["scipy"]) == (None, "1.2.3")
    assert (found["threads"], found["cpu_dispatch"]) == (1, [])


def test_a_result_that_is_wrong_is_told_by_the_place_of_its_first_fault(tmp_path: Path) -> None:
    good = run_record().model_dump()
    several = {"runs": [good, {**good, "steps": "ten"}], "steps": 1, "seconds": 0.0, "settings": {}, "versions": {}}
    wrong: list[tuple[Any, str]] = [
        ({**good, "status": "done"}, "status: Value error, is no status of minmaxcon"),
        ({**good, "certificate": {**good["certificate"], "kind": 1}}, "certificate.kind: Input should be a valid"),
        ({**good, "objective": True}, "objective: Input should be a valid number"),
        ({**good, "evidence": {"x": [0.0], "samples": -1}}, "evidence.samples: Input should be greater"),
        (several, "runs.1.steps: Input should be a valid integer"),
        ([], "the file: Input should be an object"),
    ]
    path = tmp_path / "result.json"
    for value, said in wrong:
        path.write_text(json.dumps(value))
        with pytest.raises(DataError) as caught:
            read_result(tmp_path)
        assert str(caught.value).startswith(f"{path}: is no result of minmaxcon: {said}")
        assert str(caught.value).endswith("; solve again.")
    for where in ("train", "settings", "versions"):
        path.write_text(json.dumps({**good, where: {"a": [1.0, {"b": -math.inf}]}}))
        with pytest.raises(DataError, match=f"{where}.*must be a finite number"):
            read_result(tmp_path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"result.json: cannot be read \(no text\); 'minmaxcon solve --out DIR' writes"):
        read_result(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match=r"cannot be read \(No such file or directory\)"):
        read_result(tmp_path)


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(to_json(run_record()))
    path = tmp_path / "result.json"
    for make in (lambda: path.symlink_to(tmp_path / "elsewhere"), lambda: os.mkfifo(path), path.mkdir):
        make()
        with pytest.raises(DataError, match="is a link, no regular file, or larger than any result"):
            read_result(tmp_path)
        (path.rmdir if path.is_dir() else path.unlink)()


def test_each_run_is_measured_by_its_own_bound() -> None:
    problem = cases.quadratic(bound=[0.5, 0.75])
    found = mm.solve(problem, mm.SFLS(mm.MirrorProx(steps=20), levels=1), seed=0)
    plugin: Any = SimpleNamespace(evaluate=lambda _, x: {"objective": x.sum(), "values": [1.0]})
    measured = records.measure(plugin, problem, found)
    assert [one["constraints"] for one in measured] == [[0.5], [0.25]]
    assert [one["objective"] for one in measured] == [float(x.sum()) for x in found.x]
    half: Any = SimpleNamespace(evaluate=lambda *_: {"objective": 1.0, "train": {}})
    for j, own in enumerate(records.measure(half, problem, found)):
        told = {"objective": float(found.objective[j]), "constraints": found.constraints[j].tolist()}
        assert own == {"train": {}, **told, "recomputed": False}


def test_a_plug_in_compares_with_the_solutions_of_other_problems() -> None:
    problem, other = cases.quadratic(), cases.quadratic(0.75)
    found, far = solution(x=np.zeros(3)), solution(x=np.ones(3))
    asked = list[Any]()

    def evaluate(about: Any, x: Any) -> Any:
        asked.append((about, x.tolist()))
        return {"sum": float(x.sum())}

    def compared(mine: Any, others: Any) -> Any:
        return {**mine, "others": others}

    plugin: Any = SimpleNamespace(evaluate=evaluate, compared=compared, references=lambda _: {})
    (measured,) = records.measure(plugin, problem, found, {"far": (other, far)})
    assert measured["others"] == {"far": {"sum": 3.0}}
    assert (measured["sum"], measured["objective"]) == (0.0, 0.5)
    assert asked == [(problem, [0.0] * 3), (other, [1.0] * 3)]
    (alone,) = records.measure(plugin, problem, found, {})
    assert "others" not in alone
    (without,) = records.measure(SimpleNamespace(evaluate=evaluate), problem, found, {"far": (other, far)})  # type: ignore[arg-type]
    assert "others" not in without

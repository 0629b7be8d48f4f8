"""Model files: what was written reads back, and nothing else does."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load, save

from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.results import checked_arrays, model_bytes, read_model

ARRAYS = {"weight": np.arange(6.0).reshape(2, 3), "bias": np.array([0.5], dtype=np.float32)}
DESCRIPTION = {"problem": "p", "features": ["a", "b"], "scale": 0.1}
DAMAGED = "the model is damaged or was changed since it was saved; solve again or copy it anew."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "model.safetensors"
    file.write_bytes(model_bytes(ARRAYS, DESCRIPTION))
    return file


def noted(path: Path, *, arrays: Any = ARRAYS, **changes: Any) -> None:
    """Write a model whose description is as before but for what changes."""
    with safe_open(path, framework="numpy") as content:
        note = json.loads(content.metadata()["minmaxcon"])
    path.write_bytes(save(arrays, metadata={"minmaxcon": json.dumps({**note, **changes})}))


def test_a_model_reads_back(path: Path) -> None:
    arrays, description = read_model(path)
    assert description == DESCRIPTION
    assert {name: (value.dtype, value.tolist()) for name, value in arrays.items()} == {
        name: (value.dtype, value.tolist()) for name, value in ARRAYS.items()
    }
    assert load(path.read_bytes()).keys() == ARRAYS.keys()  # what other tools read


def test_the_same_model_has_the_same_bytes() -> None:
    """Whatever the order of its names, and of the values in memory."""
    turned = {name: np.asfortranarray(ARRAYS[name]) for name in reversed(ARRAYS)}
    assert model_bytes(turned, dict(reversed(DESCRIPTION.items()))) == model_bytes(ARRAYS, DESCRIPTION)
    content = {
        model_bytes({**ARRAYS, "bias": np.array([0.5])}, DESCRIPTION),
        model_bytes({**ARRAYS, "bias": np.array([0.25], dtype=np.float32)}, DESCRIPTION),
        model_bytes(ARRAYS, {**DESCRIPTION, "scale": 0.2}),
        model_bytes(ARRAYS, DESCRIPTION),
    }
    assert len(content) == 4


@pytest.mark.parametrize(
    "arrays, description, said",
    [
        ([1.0], {}, "arrays=[1.0]: must map names to arrays of numbers."),
        ({1: np.zeros(1)}, {}, "arrays={1: array([0.])}: must map names to arrays of numbers."),
        ({"w": np.array(["a"])}, {}, "must map names to arrays of numbers."),
        ({"w": np.zeros(1), "v": np.zeros(1) + 1j}, {}, "must map names to arrays of numbers."),
        ({"w": np.array([None])}, {}, "must map names to arrays of numbers."),
        ({}, [1], "description=[1]: must be a mapping."),
        ({}, {1: 2}, "description={1: 2}: must be a mapping."),
        ({}, {"a": math.nan}, "description={'a': nan}: must be as JSON knows it: Out of range float values"),
        ({}, {"a": {1.0}}, "description={'a': {1.0}}: must be as JSON knows it: Object of type set"),
    ],
)
def test_what_is_no_model_is_not_written(arrays: Any, description: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        model_bytes(arrays, description)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_of_every_kind_are_written(tmp_path: Path) -> None:
    arrays = {"b": np.array([True]), "i": np.array([-1]), "u": np.array([1], dtype=np.uint8), "f": np.zeros(0)}
    (tmp_path / "model").write_bytes(model_bytes(arrays, {}))
    found, _ = read_model(tmp_path / "model")
    assert {name: (value.dtype, value.tolist()) for name, value in found.items()} == {
        name: (value.dtype, value.tolist()) for name, value in arrays.items()
    }


def test_a_deep_description_is_not_written() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidInput, match="must be as JSON knows it: maximum recursion"):
        model_bytes({}, {"a": deep})


def test_what_was_changed_is_noticed(path: Path) -> None:
    """Every part that the digest covers: values, types, shapes, names, the description."""
    first = path.read_bytes()
    changed = {
        "a value": {"arrays": {**ARRAYS, "bias": np.array([0.25], dtype=np.float32)}},
        "a type": {"arrays": {**ARRAYS, "bias": np.array([0x3F000000], dtype=np.int32)}},  # the same bytes
        "a shape": {"arrays": {**ARRAYS, "weight": ARRAYS["weight"].reshape(3, 2)}},
        "a name": {"arrays": {"weight": ARRAYS["weight"], "bios": ARRAYS["bias"]}},
        "one array less": {"arrays": {"weight": ARRAYS["weight"]}},
        "the description": {"description": {**DESCRIPTION, "scale": 0.2}},
        "the digest": {"blake2b": "0" * 64},
        "an older format": {"version": 0},
        "a format that is no number": {"version": "1"},
        "a description that is no mapping": {"description": "p"},
    }
    for change in changed.values():
        path.write_bytes(first)
        noted(path)  # as it was: JSON with other blanks
        assert read_model(path)[1] == DESCRIPTION
        noted(path, **change)
        with pytest.raises(DataError) as caught:
            read_model(path)
        assert str(caught.value) == f"{path}: {DAMAGED}"


def test_a_newer_format_is_told(path: Path) -> None:
    noted(path, version=2)
    with pytest.raises(DataError, match="is of format 2, and this version of minmaxcon reads 1; update it"):
        read_model(path)


def test_what_is_no_model_is_not_read(path: Path, tmp_path: Path) -> None:
    first = path.read_bytes()
    for content in (b"", b"x" * 9, first[:-1], first[:20]):
        path.write_bytes(content)
        with pytest.raises(DataError, match="the model is damaged"):
            read_model(path)
    for metadata in (None, {"other": "{}"}):
        path.write_bytes(save(ARRAYS, metadata=metadata))
        with pytest.raises(DataError, match="is no model of minmaxcon, or is damaged: its description is missing"):
            read_model(path)
    for note in ("{}", "[", "[]", '{"version": 1, "description": {}}'):
        path.write_bytes(save(ARRAYS, metadata={"minmaxcon": note}))
        with pytest.raises(DataError, match="the model is damaged"):
            read_model(path)
    for absent in (tmp_path, tmp_path / "absent"):
        with pytest.raises(DataError, match="no such model file; 'minmaxcon solve --out DIR' writes one"):
            read_model(absent)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(DataError, match="is a link, which is not followed"):
        read_model(tmp_path / "link")


def test_arrays_are_checked_by_their_shapes() -> None:
    shapes = {"weight": (2, 3), "bias": (1,)}
    found = checked_arrays(ARRAYS, shapes)
    assert {name: (value.dtype, value.tolist()) for name, value in found.items()} == {
        name: (np.float64, value.tolist()) for name, value in ARRAYS.items()
    }
    forged: list[tuple[dict[str, Any], str]] = [
        ({"weight": ARRAYS["weight"]}, "bias=None: the model has no array of this name;"),
        ({**ARRAYS, "other": np.zeros(4)}, "other=(4,): such a model has no array of this name;"),
        ({**ARRAYS, "bias": np.zeros(2)}, "bias=(2,): must have shape (1,), as the data have it;"),
        ({**ARRAYS, "bias": np.zeros(1, dtype=int)}, "bias='int64': must hold numbers of floating point;"),
        ({**ARRAYS, "bias": np.zeros(1, dtype=np.float16)}, "bias='float16': must hold numbers of floating point;"),
        ({**ARRAYS, "bias": np.array([np.inf])}, "bias='not finite': a number of the model is NaN or infinite;"),
    ]
    for arrays, said in forged:
        with pytest.raises(InvalidInput) as caught:
            checked_arrays(arrays, shapes)
        assert str(caught.value) == f"{said} solve again, or copy the model anew."

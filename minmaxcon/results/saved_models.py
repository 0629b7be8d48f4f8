"""Model files: safetensors with a description inside, and a digest over both that is checked when they are read.

A safetensors file alone does not notice most flipped bits; the BLAKE2 digest over names, types, shapes, values and
description does. Nothing in such a file is ever executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.checks import file_path, mapping
from minmaxcon.errors import DataError, InvalidInput

__all__ = ["checked_arrays", "model_bytes", "read_model"]

_KEY = "minmaxcon"
_VERSION = 1


def model_bytes(arrays: Mapping[str, Any], description: Mapping[str, Any]) -> bytes:
    """Return the content of a model file.

    Parameters
    ----------
    arrays : mapping of str to array
        The model's arrays, such as ``weight`` of shape (d,).
    description : mapping
        What is needed to use them, as JSON knows it.

    Returns
    -------
    bytes
        The same bytes for the same model.

    Raises
    ------
    InvalidInput
        If the arrays are no arrays of numbers by name, or JSON does not know the description.
    """
    from safetensors.numpy import save

    remedy = "must map names to arrays of numbers."
    mapping("arrays", arrays, remedy)
    contiguous = {name: np.ascontiguousarray(value) for name, value in sorted(arrays.items())}
    if any(value.dtype.kind not in "biuf" for value in contiguous.values()):
        raise InvalidInput("arrays", arrays, remedy)
    mapping("description", description, "must be a mapping.")
    try:
        plain = json.loads(json.dumps(description, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as failure:
        raise InvalidInput("description", description, f"must be as JSON knows it: {failure}.") from None
    note = {"version": _VERSION, "description": plain, "blake2b": _digest(contiguous, plain)}
    # One key only: safetensors keeps several in no fixed order.
    return bytes(save(contiguous, metadata={_KEY: json.dumps(note, sort_keys=True, allow_nan=False)}))


def read_model(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays and the description of a model file.

    Parameters
    ----------
    path : path
        A file whose content is from :func:`model_bytes`.

    Raises
    ------
    DataError
        There is no such file, it is no model of minmaxcon, or it was damaged or changed after it was written.
    """
    from safetensors import SafetensorError, safe_open

    file = file_path("path", path)
    if file.is_symlink():
        raise DataError(str(path), "is a link, which is not followed; copy the model itself.")
    if not file.is_file():
        raise DataError(str(path), "no such model file; 'minmaxcon solve --out DIR' writes one.")
    damaged = DataError(
        str(path), "the model is damaged or was changed since it was saved; solve again or copy it anew."
    )
    try:
        with safe_open(file, framework="numpy") as content:
            metadata = content.metadata() or {}
            names = content.keys()
            arrays = {name: content.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError) as failure:
        raise damaged from failure
    if _KEY not in metadata:
        raise DataError(str(path), "is no model of minmaxcon, or is damaged: its description is missing.")
    try:
        note = json.loads(metadata[_KEY])
        version, description, digest = note["version"], note["description"], note["blake2b"]
    except (ValueError, TypeError, KeyError, RecursionError) as failure:
        raise damaged from failure
    if isinstance(version, int) and version > _VERSION:
        raise DataError(
            str(path), f"is of format {version}, and this version of minmaxcon reads {_VERSION}; update it."
        )
    try:
        same = version == _VERSION and isinstance(description, dict) and digest == _digest(arrays, description)
    except RecursionError as failure:
        raise damaged from failure
    if not same:
        raise damaged
    return arrays, description


def checked_arrays(arrays: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Return the arrays of a model in float64, or refuse a file that was made by hand: the array is named.

    Parameters
    ----------
    arrays : mapping of str to array
        From :func:`read_model`.
    shapes : mapping of str to tuple of int
        The arrays that the model must have, and no others, with their shapes.

    Raises
    ------
    InvalidInput
        An array is missing, there is another, or one is not of its shape, of floating point, or finite.
    """
    mapping("arrays", arrays, "must map names to arrays, as read_model() returns them.")
    mapping("shapes", shapes, "must map names of arrays to their shapes.")
    remedy = "solve again, or copy the model anew."
    for name in [*shapes, *(name for name in arrays if name not in shapes)]:
        if name not in arrays:
            raise InvalidInput(name, None, f"the model has no array of this name; {remedy}")
        if name not in shapes:
            raise InvalidInput(name, np.shape(arrays[name]), f"such a model has no array of this name; {remedy}")
        array = np.asarray(arrays[name])
        if array.shape != shapes[name]:
            raise InvalidInput(name, array.shape, f"must have shape {shapes[name]}, as the data have it; {remedy}")
        if array.dtype not in (np.float64, np.float32):
            raise InvalidInput(name, str(array.dtype), f"must hold numbers of floating point; {remedy}")
        if not np.isfinite(array).all():
            raise InvalidInput(name, "not finite", f"a number of the model is NaN or infinite; {remedy}")
    return {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}


def _digest(arrays: Mapping[str, Any], description: Mapping[str, Any]) -> str:
    digest = blake2b(json.dumps(description, sort_keys=True).encode(), digest_size=32)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()

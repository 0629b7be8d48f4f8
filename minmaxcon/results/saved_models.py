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

from minmaxcon.errors import DataError

__all__ = ["model_bytes", "read_model"]

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
    """
    from safetensors.numpy import save

    contiguous = {name: np.ascontiguousarray(value) for name, value in sorted(arrays.items())}
    plain = json.loads(json.dumps(dict(description), allow_nan=False))
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

    file = Path(path)
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
    except (ValueError, TypeError, KeyError) as failure:
        raise damaged from failure
    if version != _VERSION or not isinstance(description, dict) or digest != _digest(arrays, description):
        raise damaged
    return arrays, description


def _digest(arrays: Mapping[str, Any], description: Mapping[str, Any]) -> str:
    digest = blake2b(json.dumps(description, sort_keys=True).encode(), digest_size=32)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()

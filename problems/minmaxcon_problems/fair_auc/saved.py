"""Models as named arrays that score raw rows, for model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import minmaxcon as mm

__all__ = ["model_arrays", "score_rows"]


def model_arrays(model: mm.Model, x: Any, standardizer: Any = None) -> tuple[str, dict[str, Any]]:
    """Return the kind of a model and its arrays, in raw feature units.

    Parameters
    ----------
    model : Linear or MLP
        The scoring model.
    x : array_like (d,)
        A solution; the model's parameters come first.
    standardizer : Standardizer, optional
        What the features went through; its scaling is folded in.

    Returns
    -------
    str
        ``"linear"``, with the array ``weight`` (p,): scores are right up to a constant, which no AUC sees. ``"mlp"``,
        with ``hidden_weight`` (hidden, p), ``hidden_bias`` and ``output_weight`` (hidden,).
    dict
        The arrays, in float64.

    Raises
    ------
    Unsupported
        If the model is another one.
    """
    w = np.asarray(x, dtype=np.float64)[: model.dimension]
    if isinstance(model, mm.Linear):
        return "linear", {"weight": w if standardizer is None else np.asarray(standardizer.fold(w)[0])}
    if isinstance(model, mm.MLP):
        inner, offset, outer = model.layers(w)
        if standardizer is not None:
            inner, shift = standardizer.fold(inner)
            offset = offset + shift
        return "mlp", {"hidden_weight": inner, "hidden_bias": offset, "output_weight": outer}
    raise mm.Unsupported("linear models and mm.MLP are saved; keep the solution's x for another network.")


def score_rows(kind: str, arrays: Mapping[str, Any], features: Any) -> Any:
    """Return the scores (n,) of raw rows (n, p), dense or CSR; see :func:`model_arrays`.

    Raises
    ------
    Unsupported
        If a later version saved the model, and this one does not know its kind.
    """
    if kind == "linear":
        return np.asarray(features @ np.asarray(arrays["weight"], dtype=np.float64)).ravel()
    if kind != "mlp":
        raise mm.Unsupported(f"the model is of a kind that this version does not know: {kind!r}.")
    hidden, width = arrays["hidden_weight"].shape
    parts = ("hidden_weight", "hidden_bias", "output_weight")
    w = np.concatenate([np.asarray(arrays[name], dtype=np.float64).ravel() for name in parts])
    return mm.mlp(width, hidden).predict(w, features)

"""The two engines behind one signature: equal numbers, kept precision, and constants that follow."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import minmaxcon as mm
from minmaxcon.arrays import Constant, Namespace, compiled, engine, namespace, to_numpy

_rng = np.random.default_rng(0)
X, Y = _rng.normal(size=(3, 4)), _rng.normal(size=(3, 4))

CALLS: dict[str, Any] = {
    "asarray": lambda xp, x, _: xp.asarray(X[::-1], x),
    "asarray of columns": lambda xp, x, _: xp.asarray(X.T, x),
    "asarray of a number": lambda xp, x, _: xp.asarray(np.float64(0.5), x),
    "asarray of a list": lambda xp, x, _: xp.asarray([1.0, 2.0], x),
    "asarray of what is read-only": lambda xp, x, _: xp.asarray(np.broadcast_to(X[0], (2, 4)), x),
    "copy": lambda xp, x, _: xp.copy(x),
    "zeros": lambda xp, x, _: xp.zeros((2, 3), x),
    "exp": lambda xp, x, _: xp.exp(x),
    "log": lambda xp, x, _: xp.log(xp.abs(x)),
    "tanh": lambda xp, x, _: xp.tanh(x),
    "sqrt": lambda xp, x, _: xp.sqrt(xp.abs(x)),
    "abs": lambda xp, x, _: xp.abs(x),
    "sign": lambda xp, x, _: xp.sign(x),
    "isfinite": lambda xp, x, _: xp.isfinite(x / (x > 0)),
    "maximum": lambda xp, x, y: xp.maximum(x, y),
    "maximum with a number": lambda xp, x, _: xp.maximum(x, 0.1),
    "maximum of a number": lambda xp, x, _: xp.maximum(0.1, x),
    "minimum": lambda xp, x, y: xp.minimum(x, y),
    "minimum with a number": lambda xp, x, _: xp.minimum(x, 0.1),
    "clip": lambda xp, x, y: xp.clip(x, -xp.abs(y), xp.abs(y)),
    "clip by numbers": lambda xp, x, _: xp.clip(x, -0.3, 0.4),
    "clip by whole and real": lambda xp, x, _: xp.clip(x, 0, 0.4),
    "clip by array and number": lambda xp, x, y: xp.clip(x, -xp.abs(y[0]), 0.2),
    "clip by number and array": lambda xp, x, y: xp.clip(x, -0.2, xp.abs(y)),
    "where": lambda xp, x, y: xp.where(x > 0, x, y),
    "where with a number": lambda xp, x, _: xp.where(x > 0, x, 0.0),
    "sum": lambda xp, x, _: xp.sum(x),
    "sum kept": lambda xp, x, _: xp.sum(x, keepdims=True),
    "sum of nothing": lambda xp, x, _: xp.sum(xp.take(x, [])),
    "max": lambda xp, x, _: xp.max(x),
    "max kept": lambda xp, x, _: xp.max(x, keepdims=True),
    "argmin": lambda xp, x, _: xp.argmin(x),
    "dot": lambda xp, x, y: xp.dot(x, y),
    "dot with one vector": lambda xp, x, y: xp.dot(x, y[0]),
    "matmul": lambda xp, x, y: xp.matmul(x, y.T),
    "matmul of one point": lambda xp, x, y: xp.matmul(x[0], y.T),
    "matmul of more axes": lambda xp, x, y: xp.matmul(xp.stack([x, y]), y[:2]),
    "number": lambda xp, x, y: xp.number(x[:1, :1]) * y,
    "number of a point": lambda xp, x, y: xp.number(xp.dot(x[0], x[0])) * y,
    "number of several": lambda xp, x, _: xp.number(x),
    "row_max": lambda xp, x, _: xp.row_max(x),
    "row_sum": lambda xp, x, _: xp.row_sum(x),
    "row_dot": lambda xp, x, y: xp.row_dot(x, y),
    "row_dot of more axes": lambda xp, x, y: xp.row_dot(xp.stack([x, y]), xp.stack([y, y])),
    "take": lambda xp, x, _: xp.take(x, [2, 0]),
    "take by array": lambda xp, x, _: xp.take(x, np.array([3, 3, 1])),
    "take nothing": lambda xp, x, _: xp.take(x, []),
    "take of one point": lambda xp, x, _: xp.take(x[0], [2, 0]),
    "rows": lambda xp, x, _: xp.rows(x, np.array([2, 2, 0])),
    "no rows": lambda xp, x, _: xp.rows(x, []),
    "concat": lambda xp, x, y: xp.concat([x, y]),
    "concat with nothing": lambda xp, x, y: xp.concat((x, xp.take(y, []))),
    "stack": lambda xp, x, y: xp.stack([x, y]),
    "broadcast": lambda xp, x, _: xp.broadcast_to(x[0], (3, 4)),
    "constant": lambda _, x, __: Constant(Y).like(x) * x,
    "constant as a row": lambda _, x, __: Constant(Y[0]).row(x) * x,
}


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("call", CALLS)
def test_engines_agree(call: str, dtype: str) -> None:
    found = []
    for name in ("numpy", "torch"):
        xp = engine(name)
        result = CALLS[call](xp, xp.create(X, dtype), xp.create(Y, dtype))
        assert namespace(result) is xp
        assert "float" not in str(result.dtype) or str(result.dtype).endswith(dtype), "precision was not kept"
        found.append(to_numpy(result))
    assert found[0].shape == found[1].shape
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_traced_arrays_agree(dtype: str) -> None:
    """What JAX compiles of all calls at once is what NumPy makes of each."""
    pytest.importorskip("jax", reason="the extra jax is not installed")
    numpy = engine("numpy")

    def together(x: Any, y: Any) -> dict[str, Any]:
        return {name: call(namespace(x), x, y) for name, call in CALLS.items()}

    x, y = numpy.create(X, dtype), numpy.create(Y, dtype)
    for name, result in compiled(together)(x, y).items():
        want = CALLS[name](numpy, x, y)
        if np.ndim(want):
            assert type(result) is np.ndarray, name
            assert result.dtype == want.dtype, name
        np.testing.assert_allclose(result, want, rtol=1e-12 if dtype == "float64" else 1e-5, err_msg=name)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("width", [1, 4, 40])
@pytest.mark.parametrize("shape", [(1,), (), (3,)])
def test_what_broadcasts_against_a_row_is_its_reduction(shape: tuple[int, ...], width: int, dtype: str) -> None:
    """Whether one row, one point or several; in the precision of the row, and no number where there was none."""
    xp = engine("numpy")
    x, y = (xp.create(np.random.default_rng(seed).normal(size=(*shape, width)), dtype) for seed in (0, 1))
    pairs = (
        (xp.row_max(x), x.max(axis=-1, keepdims=True)),
        (xp.row_sum(x), x.sum(axis=-1, keepdims=True)),
        (xp.row_dot(x, y), (x * y).sum(axis=-1, keepdims=True)),
    )
    for found, want in pairs:
        assert (found * x).dtype == dtype
        assert np.shape(found * x) == x.shape
        rtol, atol = (1e-12, 1e-13) if dtype == "float64" else (1e-5, 1e-6)
        np.testing.assert_allclose(found * x, want * x, rtol=rtol, atol=atol)
    inside = x > 0
    np.testing.assert_array_equal(xp.row_sum(inside) * x, inside.sum(axis=-1, keepdims=True) * x)
    x[..., -1] = np.nan
    for found in (xp.row_max(x), xp.row_sum(x), xp.row_dot(x, y)):
        assert np.isnan(found).all()


def test_an_error_of_ours_passes_through_what_is_compiled() -> None:
    pytest.importorskip("jax", reason="the extra jax is not installed")

    def refuses(x: Any) -> Any:
        raise mm.InvalidInput("width", x.shape[-1], "must be at most 3.")

    with pytest.raises(mm.InvalidInput, match=r"^width=4: must be at most 3\."):
        compiled(refuses)(X)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_automatic_derivatives(name: str) -> None:
    if name == "jax":
        pytest.importorskip("jax", reason="the extra jax is not installed")

    def gradient(x: Any) -> Any:
        xp = namespace(x)
        values, pull = xp.differentiate(lambda at: (xp.sum(xp.tanh(at)), at * at), x)
        return pull((2.0 * values[0], x))

    found = to_numpy(gradient(engine("torch").create(X)) if name == "torch" else compiled(gradient)(X))
    want = 2.0 * np.tanh(X).sum(1, keepdims=True) / np.cosh(X) ** 2 + 2.0 * X * X
    np.testing.assert_allclose(found, want, rtol=1e-12)
    assert engine("numpy").differentiate is None
    if name == "torch":
        assert engine("torch").differentiate(lambda at: (at.detach(),), engine("torch").create(X))[1] is None


def test_loops() -> None:
    pytest.importorskip("jax", reason="the extra jax is not installed")

    def powers(count: Any, x: Any) -> Any:
        return namespace(x).loop(count, lambda t, state: state * x + t, 0.0 * x)

    for count in (0, 1, 5):
        np.testing.assert_allclose(compiled(powers)(count, X), powers(count, X), rtol=1e-14)


def test_what_is_shown_cannot_be_changed_through_it() -> None:
    array, tensor = np.arange(3.0), torch.arange(3.0)
    with pytest.raises(ValueError, match="read-only"):
        namespace(array).shown(array)[0] = np.nan
    namespace(tensor).shown(tensor)[0] = np.nan
    array[1] = tensor[1] = 5.0  # their owner may go on
    assert array.tolist() == tensor.tolist() == [0.0, 5.0, 2.0]


def test_every_function_is_compared() -> None:
    """What the engines offer appears in the table above, or has a test of its own below."""
    elsewhere = {"name", "create", "double", "to_numpy", "loop", "shown", "differentiate", "traced"}
    used = {word.split("(")[0] for call in CALLS.values() for word in call.__code__.co_names}
    assert set(Namespace.__dataclass_fields__) - elsewhere <= used


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_reductions_run_over_the_last_axis(name: str) -> None:
    xp = engine(name)
    x = xp.create(X)
    np.testing.assert_allclose(to_numpy(xp.sum(x)), X.sum(axis=1), rtol=1e-14)
    np.testing.assert_array_equal(to_numpy(xp.max(x)), X.max(axis=1))
    np.testing.assert_array_equal(to_numpy(xp.argmin(x)), X.argmin(axis=1))
    np.testing.assert_allclose(to_numpy(xp.dot(x, x)), (X * X).sum(axis=1), rtol=1e-14)
    np.testing.assert_array_equal(to_numpy(xp.take(x, [2, 0])), X[:, [2, 0]])
    np.testing.assert_array_equal(to_numpy(xp.rows(x, [2, 0])), X[[2, 0]])
    assert xp.stack([x, x]).shape == (3, 4, 2)
    assert xp.concat([x, x]).shape == (3, 8)


@pytest.mark.parametrize("name", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "value",
    [X, X.tolist(), X.astype(np.float32), np.arange(3), True, torch.tensor(X), torch.nn.Parameter(torch.tensor(X))],
    ids=["array", "list", "float32", "whole", "bool", "tensor", "parameter"],
)
def test_create_copies_anything(name: str, dtype: str, value: Any) -> None:
    xp = engine(name)
    made = xp.create(value, dtype)
    before = to_numpy(xp.copy(made))
    assert namespace(made) is xp
    assert str(made.dtype).endswith(dtype)
    np.testing.assert_allclose(before, np.asarray(value.detach() if hasattr(value, "detach") else value), rtol=1e-6)
    if hasattr(value, "shape"):
        made[...] = 7.0
        again = to_numpy(xp.create(value, dtype))
        np.testing.assert_array_equal(again, before)  # what was written did not reach the caller's own


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_double_and_copy(name: str) -> None:
    xp = engine(name)
    single = xp.create(X, "float32")
    assert str(xp.double(single).dtype).endswith("float64")
    np.testing.assert_array_equal(to_numpy(xp.double(single)), X.astype(np.float32).astype(np.float64))
    copied = xp.copy(single)
    copied[...] = 0.0
    np.testing.assert_array_equal(to_numpy(single), X.astype(np.float32))


def test_to_numpy_leaves_the_graph() -> None:
    np.testing.assert_array_equal(to_numpy(torch.tensor(X, requires_grad=True) * 2.0), 2.0 * X)
    np.testing.assert_array_equal(to_numpy([1.0, 2.0]), [1.0, 2.0])


class Tagged(torch.Tensor):
    """A subclass of a tensor that lives outside torch."""


def test_the_engine_is_found_by_type() -> None:
    for x in (X, np.float32(1.0), 1.0, [1.0]):
        assert namespace(x).name == "numpy"
    for t in (torch.zeros(2), torch.nn.Parameter(torch.zeros(2)), torch.zeros(2).as_subclass(Tagged)):
        assert namespace(t).name == "torch"
    assert namespace(X) is engine("numpy")
    with pytest.raises(mm.InvalidInput, match="use one of numpy, torch, jax"):
        engine("cupy")


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_constants_take_the_precision_of_what_they_meet(name: str) -> None:
    xp = engine(name)
    constant = Constant([1.0, 1.0 / 3.0])
    for dtype in ("float32", "float64"):
        x = xp.create([0.0], dtype)
        kept = constant.like(x)
        assert kept.dtype == x.dtype
        assert kept.device == x.device
        assert namespace(kept) is xp
        assert constant.like(xp.create([5.0], dtype)) is kept, "the conversion is made once"
        assert (kept * x).dtype == x.dtype
        np.testing.assert_allclose(to_numpy(kept), [1.0, 1.0 / 3.0], rtol=1e-7 if dtype == "float32" else 0.0)


@pytest.mark.parametrize("name", ["numpy", "torch"])
@pytest.mark.parametrize(
    "clone",
    [copy.copy, copy.deepcopy, *(lambda c, p=p: pickle.loads(pickle.dumps(c, p)) for p in range(6))],
)
def test_constants_survive_copies(clone: Any, name: str) -> None:
    constant = Constant([[1.0, 2.0], [3.0, 4.0]])
    x = engine(name).create([0.0], "float32")
    constant.like(x)
    copied = clone(constant)
    np.testing.assert_array_equal(copied.value, constant.value)
    assert copied.like(x).dtype == x.dtype
    with pytest.raises(ValueError, match="read-only"):
        copied.value[0] = 5.0


def test_a_constant_is_not_the_callers_array() -> None:
    mine = np.ones(3)
    constant = Constant(mine)
    constant.like(torch.zeros(1, dtype=torch.float64))[0] = 9.0
    mine[:] = 7.0
    np.testing.assert_array_equal(constant.value, np.ones(3))
    np.testing.assert_array_equal(constant.like(np.zeros(1)), np.ones(3))

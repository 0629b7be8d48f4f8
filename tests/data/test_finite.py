"""The finite source: what it draws, what it refuses, and that it is the caller's data no longer."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon_problems.fair_auc.labelled import LabelledData
from tests.cases import fair_auc, labelled
from tests.data.streams import content, position

_rng = np.random.default_rng(0)
DENSE = _rng.normal(size=(50, 3)) * (_rng.random((50, 3)) < 0.5)
WEIGHTS = _rng.random((50, 2))

KINDS: dict[str, Any] = {
    "numpy": lambda: mm.Finite({"features": DENSE, "weights": WEIGHTS}),
    "float32": lambda: mm.Finite({"features": DENSE, "weights": WEIGHTS}, dtype="float32"),
    "torch": lambda: mm.Finite({"features": DENSE, "weights": WEIGHTS}, engine="torch"),
    "sparse": lambda: mm.Finite({"features": scipy.sparse.csr_array(DENSE), "weights": WEIGHTS}),
}


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest) -> mm.Finite:
    made: mm.Finite = KINDS[request.param]()
    return made


def plain(values: Any) -> Any:
    return values.toarray() if hasattr(values, "tocsr") else to_numpy(values)


def drawn(data: mm.Source, where: mm.Position, steps: int, size: int) -> tuple[Any, mm.Position]:
    """Features and weights of all steps side by side, (steps, size, 5)."""
    batches, after = data.draw(where, steps, size)
    return np.stack([np.hstack([plain(batch["features"]), plain(batch["weights"])]) for batch in batches]), after


# ------------------------------------------------------------------------------------------------------ what is drawn


@pytest.mark.parametrize("size", [1, 7])  # an odd number of draws leaves half a word in the generator
def test_draws_do_not_depend_on_how_steps_are_split(source: mm.Finite, size: int) -> None:
    whole, end = drawn(source, position(), 9, size)
    for parts in [(1, 8), (3, 2, 4), (1,) * 9, (9,)]:
        where, pieces = position(), []
        for part in parts:
            piece, where = drawn(source, where, part, size)
            pieces.append(piece)
        np.testing.assert_array_equal(np.concatenate(pieces), whole)
        assert content(where) == content(end)
    assert end.samples == 9 * size


def test_a_position_resumes_exactly(source: mm.Finite) -> None:
    whole, _ = drawn(source, position(), 9, 5)
    _, middle = drawn(source, position(), 4, 5)
    drawn(source, middle, 3, 5)  # what is drawn in between does not matter
    kept = pickle.loads(pickle.dumps(middle))
    for data in (source, copy.deepcopy(source)):
        np.testing.assert_array_equal(drawn(data, kept, 5, 5)[0], whole[4:])


def test_rows_are_those_of_the_generators_indices(source: mm.Finite) -> None:
    """The rows are drawn together: features and weights belong to one sample."""
    found, _ = drawn(source, position(3), 4, 5)
    expected = np.hstack([DENSE, WEIGHTS])[np.random.default_rng(3).integers(50, size=(4, 5))]
    np.testing.assert_allclose(found, expected, rtol=1e-6 if source.dtype == "float32" else 0.0)


def test_every_row_is_drawn_equally_often() -> None:
    data = mm.Finite({"row": np.arange(20.0)})
    batches, _ = data.draw(position(), 2000, 10)
    counts = np.bincount(np.concatenate([batch["row"] for batch in batches]).astype(int), minlength=20)
    chi_square = float(((counts - 1000.0) ** 2 / 1000.0).sum())
    assert counts.sum() == 20_000
    assert chi_square < 45.0  # 19 degrees of freedom: exceeded once in a thousand seeds


def test_seeds_decide() -> None:
    first = drawn(KINDS["numpy"](), position(1), 4, 5)[0]
    np.testing.assert_array_equal(first, drawn(KINDS["numpy"](), position(1), 4, 5)[0])
    assert not np.array_equal(first, drawn(KINDS["numpy"](), position(2), 4, 5)[0])


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_any_generator_will_do_and_is_not_advanced(bits: str) -> None:
    rng = np.random.Generator(getattr(np.random, bits)(5))
    where = mm.Position.start(rng)
    ours = [float(where.rng().random()) for _ in range(2)]
    found, after = drawn(KINDS["numpy"](), where, 4, 3)
    assert ours[0] == ours[1] == float(rng.random())
    again = np.random.Generator(getattr(np.random, bits)(5))
    np.testing.assert_array_equal(found[..., :3], DENSE[again.integers(50, size=(4, 3))])
    assert float(after.rng().random()) == float(again.random())


@pytest.mark.parametrize("other", ["torch", "sparse", "float32"])
def test_all_kinds_draw_the_same_rows(other: str) -> None:
    full, end = drawn(KINDS["numpy"](), position(), 5, 6)
    found, after = drawn(KINDS[other](), position(), 5, 6)
    np.testing.assert_allclose(found, full, rtol=1e-6 if other == "float32" else 0.0)
    assert content(after) == content(end)


# --------------------------------------------------------------------------------------------------- sparse and dense


@pytest.mark.parametrize("form", ["csr_array", "csr_matrix", "csc_matrix", "coo_array"])
def test_sparse_rows_equal_dense_ones(form: str) -> None:
    sparse = mm.Finite({"features": getattr(scipy.sparse, form)(DENSE)})
    full = mm.Finite({"features": DENSE})
    for one, other in zip(sparse.draw(position(), 4, 6)[0], full.draw(position(), 4, 6)[0], strict=True):
        assert one["features"].format == "csr"
        np.testing.assert_array_equal(one["features"].toarray(), other["features"])
    for rows in (None, 1, 7, 50, 1000):
        for (share, piece), (other_share, other) in zip(sparse.chunks(rows), full.chunks(rows), strict=True):
            assert share == other_share
            np.testing.assert_array_equal(piece["features"].toarray(), other["features"])


def with_features(rows: LabelledData, features: Any) -> LabelledData:
    return LabelledData(features, rows.label, rows.group, rows.feature_names)


class Pieces(mm.Finite):
    """Hands its data out in pieces of 13 rows."""

    def chunks(self, rows: int | None = None) -> Any:
        return super().chunks(13)


@pytest.mark.parametrize("form", ["csr_array", "csr_matrix"])
@pytest.mark.parametrize("runs", [1, 3])
def test_fair_auc_is_the_same_on_sparse_data(form: str, runs: int) -> None:
    """Values, gradients, exact offsets and exact values, in one piece and in many."""
    rows = labelled(2, n=90, sparse=True)
    dense = rows.features.toarray()
    sparse = fair_auc(rows=with_features(rows, getattr(scipy.sparse, form)(dense)))
    full = fair_auc(rows=with_features(rows, dense))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(runs, full.primal.dimension))
    y, a = rng.dirichlet(np.ones(3), size=runs), rng.normal(size=(runs, 5))
    for one, other in zip(sparse.data.draw(position(), 3, 20)[0], full.data.draw(position(), 3, 20)[0], strict=True):
        found, expected = sparse.family.evaluate(x, one), full.family.evaluate(x, other)
        assert type(found.F) is np.ndarray
        np.testing.assert_allclose(found.F, expected.F, rtol=1e-13)
        np.testing.assert_allclose(found.G, expected.G, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found.pullback(y, a), expected.pullback(y, a), rtol=1e-12, atol=1e-14)
    refined = full.family.refine(x, full.data)
    values = full.at_level(np.zeros(runs)).values(refined)
    for problem in (sparse, full):
        pieces = Pieces(problem.data.arrays)
        in_pieces = mm.MinMaxProblem(problem.objective, problem.constraints, problem.primal, pieces)
        np.testing.assert_allclose(problem.family.refine(x, problem.data), refined, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(problem.family.refine(x, pieces), refined, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(problem.at_level(np.zeros(runs)).values(refined), values, rtol=1e-12)
        np.testing.assert_allclose(in_pieces.at_level(np.zeros(runs)).values(refined), values, rtol=1e-12)


# ------------------------------------------------------------------------------------------------- pieces and memory


@pytest.mark.parametrize("rows", [None, 0, 1, 8, 49, 50, 51])
def test_chunks_cover_the_data_once(source: mm.Finite, rows: int | None) -> None:
    shares, pieces = zip(*((share, plain(batch["features"])) for share, batch in source.chunks(rows)), strict=True)
    assert sum(shares) == pytest.approx(1.0, abs=1e-14)
    assert [round(50 * share) for share in shares] == [len(piece) for piece in pieces]
    assert max(len(piece) for piece in pieces) <= max(50 if rows is None else rows, 1)
    np.testing.assert_array_equal(np.concatenate(pieces), plain(source.arrays["features"]))


def test_chunks_have_bounded_memory_by_default() -> None:
    sizes = [len(batch["x"]) for _, batch in mm.Finite({"x": np.zeros(150_000)}).chunks()]
    assert sum(sizes) == 150_000
    assert max(sizes) <= 65_536


@pytest.mark.parametrize("rows", [None, 20])
def test_a_chunk_is_not_the_sources_own_mapping(source: mm.Finite, rows: int | None) -> None:
    for _, batch in source.chunks(rows):
        dict.clear(batch)
    assert set(source.arrays) == {"features", "weights"}


def test_batches_are_made_one_by_one() -> None:
    data = mm.Finite({"features": np.zeros((1000, 50))})
    tracemalloc.start()
    batches, _ = data.draw(position(), 1000, 100)
    for batch in batches:
        assert batch["features"].shape == (100, 50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000  # all batches together would be 40 MB, their indices are 0.8 MB


# --------------------------------------------------------------------------------------------- precision and aliasing


@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_kept(engine: str, dtype: str) -> None:
    data = mm.Finite({"x": DENSE, "whole": np.arange(50), "truth": np.arange(50) > 7}, engine=engine, dtype=dtype)
    for batch in (*data.draw(position(), 2, 4)[0], *(batch for _, batch in data.chunks(7))):
        assert all(str(values.dtype).endswith(dtype) for values in batch.values())
    assert str(data.like.dtype).endswith(dtype)
    assert type(data.like) is type(data.arrays["x"])


def test_a_float32_evaluation_stays_float32() -> None:
    for rows in (labelled(n=60), labelled(n=60, sparse=True)):
        problem = fair_auc(rows=rows, dtype="float32")
        x = problem.start_point(2)
        (batch,) = problem.data.draw(position(), 1, 10)[0]
        found = problem.family.evaluate(x, batch)
        gradient = found.pullback(np.full((2, 3), 1 / 3, dtype=np.float32), found.G)
        assert {str(part.dtype) for part in (x, found.F, found.G, gradient)} == {"float32"}


MAKERS: dict[str, Any] = {
    "array": np.array,
    "columns": np.asfortranarray,
    "csr": scipy.sparse.csr_array,
    "csr_matrix": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
    "tensor": torch.tensor,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "kind, engine", [(kind, "numpy") for kind in MAKERS] + [(k, "torch") for k in ("array", "columns", "tensor")]
)
def test_the_callers_arrays_are_copied(kind: str, engine: str, dtype: str) -> None:
    mine = MAKERS[kind](DENSE.astype(dtype))
    given = {"features": mine}
    data = mm.Finite(given, engine=engine, dtype=dtype)
    if scipy.sparse.issparse(mine):
        for part in ("data", "indices", "indptr"):
            getattr(mine, part)[:] = 1
    else:
        mine[:] = 7.0
    given.clear()
    np.testing.assert_array_equal(plain(data.arrays["features"]), DENSE.astype(dtype))
    (batch,) = data.draw(position(), 1, 50)[0]
    if not scipy.sparse.issparse(batch["features"]):
        batch["features"][:] = 9.0  # nor is a batch the source's own
    np.testing.assert_array_equal(plain(data.arrays["features"]), DENSE.astype(dtype))


@pytest.mark.parametrize("engine", ["numpy", "torch", "jax"])
def test_rows_lie_in_one_piece(engine: str) -> None:
    """A frame's columns do not, and NumPy would copy all of them for each batch."""
    whole = np.zeros((4, 50, 3))
    for mine in (np.asfortranarray(DENSE), whole.transpose(1, 0, 2), whole[0, ::2]):
        (found,) = mm.Finite({"features": mine}, engine=engine).arrays.values()
        assert np.asarray(found).flags.c_contiguous


CLONES: list[Any] = [copy.copy, copy.deepcopy, lambda data: pickle.loads(pickle.dumps(data))]


@pytest.mark.parametrize("clone", CLONES)
def test_copies_draw_the_same(source: mm.Finite, clone: Any) -> None:
    copied = clone(source)
    assert copied.size == source.size == 50
    assert repr(copied) == repr(source)
    np.testing.assert_array_equal(drawn(copied, position(), 3, 4)[0], drawn(source, position(), 3, 4)[0])


@pytest.mark.parametrize("clone", [lambda data: data, *CLONES])
@pytest.mark.parametrize("kind", ["numpy", "float32", "sparse"])
def test_rows_cannot_be_changed_in_place(kind: str, clone: Any) -> None:
    """What solvers keep of them, such as moments, would be that of other rows. The caller's own arrays stay free."""
    given = {"features": scipy.sparse.csr_array(DENSE) if kind == "sparse" else DENSE.copy(), "weights": WEIGHTS.copy()}
    data = clone(mm.Finite(given, dtype="float32" if kind == "float32" else "float64"))
    kept = data.arrays["features"].data if kind == "sparse" else data.arrays["features"]
    for held in (kept, data.arrays["weights"]):
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 7.0
    for _, batch in data.chunks(20):
        with pytest.raises(ValueError, match="read-only"):
            batch["weights"][0] = 7.0
    (given["features"].data if kind == "sparse" else given["features"])[:1] = 7.0
    assert 7.0 not in plain(data.arrays["features"])


def test_a_deep_copy_is_independent(source: mm.Finite) -> None:
    copied = copy.deepcopy(source)
    if source.engine == "torch":
        copied.arrays["weights"][:] = 0.0
        np.testing.assert_allclose(plain(source.arrays["weights"]), WEIGHTS, rtol=1e-6)
    else:
        assert not np.shares_memory(copied.arrays["weights"], source.arrays["weights"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("order", ["unsorted", "duplicate"])
def test_sparse_rows_in_any_order_can_be_used(order: str, dtype: str) -> None:
    """SciPy sorts indices and sums duplicates in place where it needs that, and the rows are protected."""
    columns = {"unsorted": [5, 1, 0], "duplicate": [5, 1, 5]}[order]
    entries, ends = np.arange(1.0, 31.0), np.arange(0, 31, 3)
    given = scipy.sparse.csr_array((entries, np.array(columns * 10), ends), shape=(10, 6))
    (held,) = mm.Finite({"features": given}, dtype=dtype).arrays.values()
    dense = scipy.sparse.coo_array((entries, (np.repeat(np.arange(10), 3), columns * 10)), shape=(10, 6)).toarray()
    np.testing.assert_array_equal(abs(held).toarray(), dense)
    np.testing.assert_array_equal(held.power(2).toarray(), dense**2)
    assert held.count_nonzero() == np.count_nonzero(dense)
    np.testing.assert_array_equal(given.indices, columns * 10)  # the caller's own stays as it was


# -------------------------------------------------------------------------------------------------------- bad input


def with_entry(value: float, shape: tuple[int, ...] = (4, 3), at: tuple[int, ...] = (2, 1)) -> Any:
    entries = np.ones(shape)
    entries[at] = value
    return entries


@pytest.mark.parametrize("engine, dtype", [("numpy", "float64"), ("torch", "float32")])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named_by_row_and_column(engine: str, value: float, dtype: str) -> None:
    with pytest.raises(mm.InvalidInput, match="row 2, column 1") as caught:
        mm.Finite({"fine": np.ones(4), "features": with_entry(value)}, engine=engine, dtype=dtype)
    assert caught.value.argument == "features"
    with pytest.raises(mm.InvalidInput, match="row 3 is"):
        mm.Finite({"label": with_entry(value, (4,), (3,))}, engine=engine, dtype=dtype)


@pytest.mark.parametrize("form", ["csr_array", "csr_matrix", "csc_array", "coo_array"])
def test_what_is_not_finite_is_named_in_sparse_data(form: str) -> None:
    entries = np.eye(4, 3)
    entries[2, 1] = np.nan
    with pytest.raises(mm.InvalidInput, match="row 2, column 1"):
        mm.Finite({"features": getattr(scipy.sparse, form)(entries)})


@pytest.mark.parametrize("kind", ["array", "csr"])
def test_what_does_not_fit_the_precision_is_named(kind: str) -> None:
    entries = MAKERS[kind](with_entry(1e39))
    assert mm.Finite({"features": entries}).size == 4
    with pytest.raises(mm.InvalidInput, match="row 2, column 1 is NaN, infinite or too large for float32"):
        mm.Finite({"features": entries}, dtype="float32")


@pytest.mark.parametrize(
    "arrays, options, message",
    [
        ({}, {}, "at least one"),
        ({"x": np.zeros((0, 2))}, {}, "no sample"),
        ({"x": scipy.sparse.csr_array((0, 2))}, {}, "no sample"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(4)}, {}, "'x': 3, 'y': 4.*one row per sample"),
        ({"x": scipy.sparse.csr_array((3, 2)), "y": np.zeros(4)}, {}, "one row per sample"),
        ({"x": np.zeros((3, 2))}, {"dtype": "float16"}, "float64"),
        ({"x": np.zeros((3, 2))}, {"engine": "cupy"}, "unknown array engine"),
        ({"x": scipy.sparse.csr_array(np.eye(3))}, {"engine": "torch"}, "sparse"),
        ({"x": 3.0}, {}, "first axis"),
        ({"x": [["a", "b"]]}, {}, "array of numbers.*'a'"),
        ({"x": [[1.0], [1.0, 2.0]]}, {}, "array of numbers"),
        ({"x": [None, "b"]}, {}, "array of numbers"),
    ],
)
def test_what_cannot_be_used_is_named(arrays: Any, options: Any, message: str) -> None:
    with pytest.raises(mm.InvalidInput, match=message) as caught:
        mm.Finite(arrays, **options)
    assert "\n" not in str(caught.value)


def test_frames_are_read_as_arrays() -> None:
    pandas = pytest.importorskip("pandas")
    data = mm.Finite({"features": pandas.DataFrame(DENSE, index=np.arange(50)[::-1])})
    np.testing.assert_array_equal(data.arrays["features"], DENSE)


def test_shards_divide_the_rows_and_keep_engine_precision_and_device() -> None:
    whole = mm.Finite({"z": np.arange(7.0)}, engine="torch", dtype="float32", device="cpu:0")
    shards = [whole.shard(number, 3) for number in range(3)]
    assert [part.arrays["z"].tolist() for part in shards] == [[0, 3, 6], [1, 4], [2, 5]]
    assert {(part.engine, part.dtype, part.device) for part in shards} == {("torch", "float32", "cpu:0")}
    with pytest.raises(mm.InvalidInput, match="fewer than one a shard"):
        whole.shard(0, 8)

"""Rows on disk: every window is a random sample whatever the file's order, draws are positions, and nothing is left."""

from __future__ import annotations

import os
import pickle
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import minmaxcon as mm
from minmaxcon.data import ArrayBlocks
from minmaxcon.solvers.checkpoint import settings_of
from tests.data.streams import position

N = 5000
VALUES = np.arange(float(N))
POINTS = np.random.default_rng(0).normal(size=(N, 3))


def source(window: int = 400, **options: Any) -> mm.OnDisk:
    return mm.OnDisk(ArrayBlocks({"points": POINTS, "value": VALUES}), window=window, **options)


def values(data: mm.Source, where: mm.Position, steps: int, size: int) -> Any:
    return np.concatenate([np.asarray(batch["value"]) for batch in data.draw(where, steps, size)[0]])


def test_an_epoch_has_every_row_once_and_the_next_another_order() -> None:
    data = source()
    first, second = values(data, position(), 100, 100).reshape(2, N)
    assert np.array_equal(np.sort(first), VALUES)
    assert np.array_equal(np.sort(second), VALUES)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_draws_do_not_depend_on_how_steps_are_split_or_what_was_read_before(size: int) -> None:
    data, steps = source(), N * 2 // size
    whole = values(data, position(), steps, size)
    where, pieces = position(), []
    for part in (1, steps // 3, 5):
        batches, where = data.draw(where, part, size)
        pieces += [batch["value"] for batch in batches]
    assert np.array_equal(np.concatenate(pieces), whole[: (6 + steps // 3) * size])
    later = mm.Position(position().generator, 7 * size)
    assert np.array_equal(values(source(), later, 20, size), whole[7 * size : 27 * size])


def test_rows_keep_together_and_prepare_sees_them() -> None:
    def prepare(arrays: Any) -> Any:
        return {"sum": arrays["points"].sum(axis=1) + arrays["value"], "value": arrays["value"]}

    expected = POINTS.sum(axis=1) + VALUES
    for batch in source(prepare=prepare).draw(position(), 50, 100)[0]:
        np.testing.assert_allclose(batch["sum"], expected[batch["value"].astype(int)], rtol=1e-12)


@pytest.mark.parametrize("dtype,engine", [("float64", "numpy"), ("float32", "numpy"), ("float32", "torch")])
def test_pieces_are_all_rows_in_the_precision_asked_for(dtype: str, engine: str) -> None:
    data = source(dtype=dtype, engine=engine)
    pieces = list(data.chunks(333))
    assert sum(share for share, _ in pieces) == pytest.approx(1.0)
    assert max(len(batch["value"]) for _, batch in pieces) <= 333
    batch = pieces[0][1]["points"]
    assert str(batch.dtype).endswith(dtype)
    assert isinstance(batch, torch.Tensor) is (engine == "torch")
    order = np.concatenate([np.asarray(batch["value"]) for _, batch in pieces]).astype(int)
    assert np.array_equal(np.sort(order), np.arange(N))
    points = np.concatenate([np.asarray(batch["points"]) for _, batch in pieces])
    np.testing.assert_allclose(points, POINTS[order], rtol=1e-6)


def test_windows_of_a_sorted_file_are_simple_random_samples() -> None:
    """The variance of the mean of m of n rows is that of sampling without replacement, sorted as the values are."""
    found = []
    for seed in range(60):
        drawn = values(source(window=500, seed=seed), position(seed), 10, 500)
        found += [drawn[k : k + 500].mean() for k in range(0, N, 500)]
    expected = VALUES.var() / 500 * (N - 500) / (N - 1)
    assert np.mean(found) == pytest.approx(VALUES.mean(), abs=1e-9)
    assert np.var(found) == pytest.approx(expected, rel=0.25)  # 540 free means: a standard error of 6%


def test_the_copy_does_not_depend_on_the_blocks_in_which_rows_come() -> None:
    class Small(ArrayBlocks):
        def blocks(self) -> Any:
            for begin in range(0, N, 77):
                yield {"points": POINTS[begin : begin + 77], "value": VALUES[begin : begin + 77]}

    small = mm.OnDisk(Small({"points": POINTS, "value": VALUES}), window=400)
    assert small.digest == source().digest
    assert np.array_equal(values(small, position(), 30, 100), values(source(), position(), 30, 100))


@pytest.mark.parametrize("rows, window", [(7, 1), (7, 100), (40, 3)])
def test_rows_of_any_shape_come_back_from_windows_few_or_many(
    rows: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of as many windows as rows some have none; and what is kept in memory is written however small that is."""
    arrays = {"matrix": np.arange(6.0 * rows).reshape(rows, 2, 3), "value": np.arange(float(rows))}
    monkeypatch.setattr("minmaxcon.data.on_disk._BUFFERS", 2 * 7 * 8)  # two rows of seven numbers
    data = mm.OnDisk(ArrayBlocks(arrays), window=window)
    drawn = list(data.draw(position(), rows, 1)[0])
    order = np.concatenate([batch["value"] for batch in drawn]).astype(int)
    assert sorted(order) == list(range(rows))
    np.testing.assert_array_equal(np.concatenate([batch["matrix"] for batch in drawn]), arrays["matrix"][order])


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds the file, which has no name, in /proc")
def test_a_copy_that_was_cut_is_noticed(tmp_path: Path) -> None:
    data = source(folder=tmp_path)
    links = {int(link.name): os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()}
    (number,) = [number for number, file in links.items() if file.startswith(f"{tmp_path}/")]
    os.truncate(number, 1000)
    with pytest.raises(mm.MinMaxConError, match=f"the rows of arrays in {tmp_path} end too early: the file was cut"):
        list(data.chunks(N))


def test_a_memory_map_and_a_pickled_source(tmp_path: Path) -> None:
    np.save(tmp_path / "points.npy", POINTS)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    data = mm.OnDisk(ArrayBlocks({"points": mapped, "value": VALUES}), window=400)
    again = pickle.loads(pickle.dumps(data))
    assert again.digest == data.digest == source().digest
    assert np.array_equal(values(again, position(), 3, 100), values(source(), position(), 3, 100))


class Broken:
    """Blocks of which the second is replaced."""

    name, rows = "broken.parquet", 20

    def __init__(self, second: Any) -> None:
        self.second = second

    def blocks(self) -> Any:
        yield {"a": np.zeros((10, 2)), "b": np.zeros(10)}
        yield self.second


@pytest.mark.parametrize(
    "second,said",
    [
        ({"a": np.zeros((10, 3)), "b": np.zeros(10)}, r"from row 11 on it has a \(3,\), b \(\), where the rows before"),
        ({"a": np.zeros((10, 2))}, "from row 11 on it has"),
        ({"a": np.zeros((10, 2)), "b": np.zeros(9)}, "from row 11 on it has"),
        ({"a": np.zeros((10, 2)), "b": np.full(10, np.nan)}, "row 11: b is NaN or infinite"),
        ({"a": np.zeros((10, 2)), "b": np.array(["x"] * 10)}, "b holds <U1, not numbers"),
        ({"a": np.zeros((7, 2)), "b": np.zeros(7)}, "has 17 rows, not 20: it changed while it was read"),
    ],
)
def test_blocks_that_change_half_way_are_refused_in_one_line(second: Any, said: str) -> None:
    with pytest.raises(mm.DataError, match=f"broken.parquet: .*{said}") as caught:
        mm.OnDisk(Broken(second))
    assert "\n" not in str(caught.value)


def test_bad_arguments() -> None:
    with pytest.raises(mm.InvalidInput, match="dtype='int8'"):
        source(dtype="int8")
    with pytest.raises(mm.InvalidInput, match="window=0"):
        source(window=0)
    with pytest.raises(mm.InvalidInput, match=r"folder='/nowhere/at/all': cannot hold the rows of arrays"):
        source(folder="/nowhere/at/all")
    with pytest.raises(mm.InvalidInput, match="all equally long"):
        ArrayBlocks({"a": np.zeros(3), "b": np.zeros(4)})
    with pytest.raises(mm.DataError, match="has no rows"):
        mm.OnDisk(ArrayBlocks({"a": np.zeros(0)}))


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    script = f"""
import resource, signal, numpy as np, minmaxcon as mm
from minmaxcon.data import ArrayBlocks
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    mm.OnDisk(ArrayBlocks({{"a": np.zeros((100_000, 5))}}), window=1000, folder={str(tmp_path)!r})
except mm.MinMaxConError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.startswith(f"the rows of arrays do not fit into {tmp_path} (File too large): ")
    assert found.stdout.count("\n") == 1
    assert not list(tmp_path.iterdir())
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 100_000


class Mean(mm.StochasticMinMaxConstraint):
    """A quadratic with its least value at the mean of the points."""

    convex, name = True, "mean"

    def __init__(self, shift: float, bound: float = 0.0) -> None:
        self.shift, self.bound = shift, bound

    def evaluate(self, x: Any, batch: Any) -> mm.Evaluation:
        apart = x[..., None, :] - batch["points"] - self.shift
        square, mean = (apart**2).sum(-1).mean(-1), apart.mean(-2)
        return mm.Evaluation(square, square[..., None][..., :0], lambda y, _: 2.0 * y[..., None] * mean)


def problem(data: mm.Source) -> mm.MinMaxProblem:
    return mm.MinMaxProblem(Mean(1.0), [Mean(-0.5, 6.0)], mm.Ball(3, 5.0), data)


@pytest.mark.parametrize("solver", [mm.SFLS(oracle=mm.SMD(steps=50)), mm.SFLS(oracle=mm.MirrorProx(steps=40))])
def test_solvers_find_on_disk_what_they_find_in_memory(solver: mm.Solver) -> None:
    """The rows are sorted, which does no harm; exact values and bounds are those of all rows."""
    few = POINTS[:2000]
    arrays = {"points": few[np.argsort(few[:, 0])], "value": VALUES[:2000]}
    solved = [
        mm.solve(problem(data), solver, seed=1)
        for data in (mm.Finite(arrays), mm.OnDisk(ArrayBlocks(arrays), window=400))
    ]
    assert [str(found.status) for found in solved] == ["solved", "solved"]
    assert solved[1].objective == pytest.approx(solved[0].objective, abs=1e-2 * (6.0 - solved[0].objective))
    values_there = mm.core.linearisation.exact_values(
        problem(mm.Finite(arrays)).family, solved[1].x[None], mm.Finite(arrays)
    )
    assert solved[1].objective == pytest.approx(float(values_there[0, 0]), rel=1e-12)


def test_a_solve_goes_on_with_the_same_bits_and_only_on_the_same_rows(tmp_path: Path) -> None:
    solver = mm.SFLS(oracle=mm.SMD(steps=30))
    whole = mm.solve(problem(source()), solver, seed=2)
    mm.solve(problem(source()), solver, seed=2, budget=70, checkpoint=tmp_path)
    rest = mm.solve(problem(source()), solver, seed=2, resume=tmp_path)
    assert np.array_equal(rest.x, whole.x)
    assert rest.steps == whole.steps
    other = mm.OnDisk(ArrayBlocks({"points": POINTS + 1e-9, "value": VALUES}), window=400)
    with pytest.raises(mm.InvalidInput, match=r"was written with data\.digest = "):
        mm.solve(problem(other), solver, seed=2, resume=tmp_path)
    assert settings_of(problem(source()), solver, 2, None)["data.digest"].startswith("'5000 x 4 float64 ")

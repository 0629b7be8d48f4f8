"""``device=`` beside ``engine=``: taken by every problem and source, and refused in one line where it is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.cli import main
from minmaxcon.data import ArrayBlocks, OnDisk
from minmaxcon.registry import plugin_names

torch = pytest.importorskip("torch")
THERE = r'torch cannot use it .*; use "cpu"'

ROWS = np.random.default_rng(0).normal(size=(300, 3))
SOURCES: dict[str, Callable[..., mm.Source]] = {
    "finite": lambda **kind: mm.Finite({"z": ROWS}, **kind),
    "stream": lambda **kind: mm.Stream([{"z": row} for row in ROWS], **kind),
    "on disk": lambda **kind: OnDisk(ArrayBlocks({"z": ROWS}), **kind),
}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device here")
@pytest.mark.parametrize("name", plugin_names())
def test_every_problem_takes_a_device(name: str) -> None:
    """``cpu:0`` goes the way of another device, as far as this machine can."""
    assert mm.load_problem(name, engine="torch", device="cpu:0").data.device == "cpu:0"
    with pytest.raises(mm.InvalidInput, match=THERE):
        mm.load_problem(name, engine="torch", device="cuda")
    with pytest.raises(mm.InvalidInput, match='NumPy computes on "cpu" alone'):
        mm.load_problem(name, device="cuda")


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_takes_a_device(kind: str) -> None:
    def drawn(**given: str) -> list[Any]:
        source = SOURCES[kind](**given)
        batches, _ = source.draw(mm.Position.start(np.random.default_rng(1)), 2, 7)
        return [np.asarray(batch["z"]) for batch in batches]

    plain = drawn()
    for engine in ("numpy", "torch"):
        np.testing.assert_array_equal(drawn(engine=engine, device="cpu"), plain)
    np.testing.assert_array_equal(drawn(engine="torch", device="cpu:0"), plain)
    with pytest.raises(
        mm.InvalidInput, match=r"device='nowhere': torch cannot use it \(it knows no such kind of device\)"
    ):
        SOURCES[kind](engine="torch", device="nowhere")
    with pytest.raises(mm.InvalidInput, match='NumPy computes on "cpu" alone'):
        SOURCES[kind](device="cuda")
    if kind == "stream":
        block, _ = SOURCES[kind](engine="torch", device="cpu:0").block(mm.Position.start(np.random.default_rng(1)), 5)
        assert block is not None
        assert block.device == "cpu:0"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device here")
def test_the_command_line_names_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "toy", "--engine", "torch", "--device", "cuda"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("minmaxcon: error: --device='cuda': torch cannot use it (")
    assert told.endswith('use "cpu".')


def test_the_engine_of_a_target_acts_or_is_refused() -> None:
    problem = mm.load_problem("fair_auc", max_gap=0.05, engine="torch", dtype="float32")
    assert (problem.data.engine, str(problem.data.like.dtype)) == ("torch", "torch.float32")
    with pytest.raises(mm.InvalidInput, match=r"engine='jax'.*made anew at every point"):
        mm.load_problem("fair_auc", max_gap=0.05, engine="jax")

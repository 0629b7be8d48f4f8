"""The measurement of steps: what it returns and says; never how long anything takes."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import minmaxcon as mm
from minmaxcon.core import Position
from minmaxcon.results.records import to_json
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.study import bench, peers
from minmaxcon_problems.fair_auc.study.bench import PeerTime, StepTime, bench_steps, targets

SMALL = {"seconds": 0.01, "rounds": 3, "rows": 400, "features": 7, "engines": ("numpy", "torch")}
PEERS = {"cooper-optim": "cooper", "humancompatible-train": "humancompatible.train"}


def here(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture(scope="module")
def result():
    return bench_steps(runs=(1, 16), **SMALL)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    label, group = rng.choice([-1, 1], (2, 300))
    features = rng.standard_normal((300, 4)) + 0.4 * label[:, None]
    data = LabelledData(features, label, group, ("a", "b", "c", "d"))
    return mm.load_problem("fair_auc", data=data, metric="intra_group", kappa=0.6, c1=0.6, c2=1.1, engine="torch")


def test_a_row_for_every_engine_precision_and_number_of_runs(result):
    kinds = [("numpy", "float32"), ("numpy", "float64"), ("torch", "float32")]
    assert [(one.engine, one.dtype, one.runs) for one in result.steps] == [
        (*kind, R) for kind in kinds for R in (1, 16)
    ]
    for one in result.steps:
        assert 0 < one.spread[0] <= one.step <= one.spread[1] < math.inf
        assert one.run_step == pytest.approx(one.step / one.runs)
        assert 0 < one.products < math.inf


def test_torch_by_hand_stands_first_and_every_ratio_is_to_the_first_row(result):
    assert result.peers[0].package == "torch"
    for peer in result.peers:
        assert 0 < peer.spread[0] <= peer.step <= peer.spread[1]
        assert peer.ratio > 0


@pytest.mark.parametrize("package", PEERS)
def test_an_installed_package_is_measured_with_two_methods(result, package):
    if not here(PEERS[package]):
        pytest.skip(f"{package} is not installed: pip install -e '.[bench]'")
    found = [peer for peer in result.peers if peer.package == package]
    assert len(found) == 2
    assert {peer.version for peer in found} == {result.versions[package]}


def test_a_missing_package_is_named_with_the_remedy(problem, monkeypatch):
    known = peers.version

    def version(package):
        if package in PEERS:
            raise peers.PackageNotFoundError(package)
        return known(package)

    monkeypatch.setattr(peers, "version", version)
    found, missing = peers.installed_peers(problem)
    assert [peer.package for peer in found] == ["torch"]
    assert [note.split()[0] for note in missing] == list(PEERS)
    assert all("pip install 'minmaxcon[bench]'" in note for note in missing)


def test_the_result_as_data_is_valid_json_and_complete(result):
    data = json.loads(to_json(result.as_dict()))
    assert set(data) == {"steps", "problems", "peers", "targets", "notes", "settings", "machine", "versions"}
    assert len(data["steps"]) == 6
    assert data["settings"]["runs"] == [1, 16]
    assert data["settings"]["batch_size"] == 100
    assert {"cpu", "cores", "load_average", "own_share"} <= set(data["machine"])
    assert data["versions"]["threads"] == 1
    assert {"minmaxcon", "numpy", "torch", "python"} <= set(data["versions"])


def test_the_table_holds_every_row_within_100_columns_and_notes_below(result):
    lines = result.table().splitlines()
    assert "7 dense features" in lines[0]
    assert sum(f"{one.step:,.1f}" in line for one in result.steps for line in lines) >= len(result.steps)
    assert all(any(peer.method in line for line in lines) for peer in result.peers)
    assert max(map(len, lines[4:11])) <= 100
    assert not any(line != line.rstrip() for line in lines)
    for note in result.notes:
        assert note in lines


def test_without_peers_none_is_measured_and_none_is_missed_and_threads_are_put_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        result = bench_steps(runs=(1,), peers=False, **{**SMALL, "engines": ("numpy",)})
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert result.peers == []
    assert not any("not installed" in note for note in result.notes)
    assert [target.name for target in result.targets] == ["us a step, R = 1"]


@pytest.mark.rel
def test_problems_are_measured_interpreted_and_compiled(monkeypatch):
    pytest.importorskip("jax", reason="the extra jax is not installed")
    monkeypatch.setattr(bench, "plugin_names", lambda: ("toy",))
    result = bench_steps(runs=(1,), peers=False, **{**SMALL, "engines": ("numpy", "jax")})
    assert [one.engine for one in result.steps] == ["numpy", "numpy", "jax", "jax"]
    assert [one.problem for one in result.problems] == ["toy"]
    for one in result.problems:
        assert one.compiling > 0
        assert 0 < one.ratio < math.inf
    assert "toy" in result.table()
    assert "compiled over interpreted, R = 1" in [target.name for target in result.targets]


@pytest.mark.parametrize(
    "argument, value",
    [
        ("seconds", 0.0),
        ("seconds", math.nan),
        ("runs", ()),
        ("runs", (0,)),
        ("rows", 3),
        ("rounds", 0),
        ("features", 0),
        ("engines", ("cupy",)),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(argument, value):
    with pytest.raises(mm.InvalidInput, match=f"^{argument}="):
        bench_steps(**{argument: value})


def test_peers_minimise_the_mean_over_all_pairs_of_the_batch(problem):
    batch = next(problem.data.draw(Position.start(np.random.default_rng(1)), 1, 60)[0])
    w = torch.tensor([0.4, -1.1, 0.3, 0.8], dtype=torch.float64, requires_grad=True)
    found = peers.pair_values(problem)(w, batch)

    scores, member = batch["features"] @ w, batch["weights"] > 0
    losses = []
    for function, bound in zip([problem.objective, *problem.constraints], [0.0, *problem.bounds()[0]], strict=True):
        total = -torch.tensor(bound)
        for pair in function.pairs:
            h, other = scores[member[:, 2 * pair]], scores[member[:, 2 * pair + 1]]
            total = total + 0.6 * ((h[:, None] - other[None, :] - 1.1) ** 2).mean()
        losses.append(total)
    expected = torch.stack(losses)
    torch.testing.assert_close(found, expected)
    mixture = torch.tensor([1.0, 0.3, 2.0], dtype=torch.float64)
    gradients = [torch.autograd.grad(values @ mixture, w, retain_graph=True)[0] for values in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_every_peer_lowers_the_objective_where_the_constraints_are_slack(problem):
    values = peers.pair_values(problem)
    batches = list(problem.data.draw(Position.start(np.random.default_rng(2)), 20, 100)[0])
    found, _ = peers.installed_peers(problem)

    def objective(peer):
        w = torch.as_tensor(peer.weights(), dtype=problem.data.like.dtype)
        return sum(values(w, batch)[0].item() for batch in batches)

    for peer in found:
        before = objective(peer)
        for batch in batches:
            peer.step(batch)
        assert np.isfinite(peer.weights()).all()
        assert objective(peer) < before, peer.method


def test_targets_are_judged_by_their_own_rows_only():
    def step(runs, time, engine="numpy", dtype="float32"):
        return StepTime(engine, dtype, runs, time, time / runs, (time, time), 1.0)

    steps = [step(1, 99.0), step(256, 600.0), step(1, 500.0, "torch"), step(256, 9000.0, dtype="float64")]
    times = [
        PeerTime("cooper-optim", "1", "x", 450.0, (450.0, 450.0), 4.5),
        PeerTime("torch", "2", "y", 1.0, (1, 1), 0.1),
    ]
    found = targets(steps, times)
    assert [(round(target.found, 3), target.met) for target in found] == [(99.0, True), (2.344, False), (4.5, False)]
    assert targets([], []) == []


def test_a_busy_machine_is_said_to_be_one():
    (note,) = bench._busy(3.2, 0.8, 2)
    assert "3.20" in note
    assert "80%" in note
    assert list(bench._busy(0.1, 0.999, 2)) == []
    assert list(bench._busy(None, 0.999, 2)) == []


def test_all_contestants_draw_the_same_samples():
    drawn = []

    class Spy:
        like = torch.zeros(0)

        def draw(self, position, steps, batch_size):
            drawn.append((position.samples, position.generator["state"]["state"], steps, batch_size))
            return iter(()), position

    for _ in range(2):
        bench._peer(SimpleNamespace(step=None), SimpleNamespace(data=Spy()), 100, seed=4)()
    assert drawn[0] == drawn[1]
    assert drawn[0][0] == 0

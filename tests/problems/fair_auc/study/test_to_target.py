"""The measurement of time to a target: what counts as reached, and what it says; never how long anything takes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.results.records import to_json
from minmaxcon_problems.fair_auc.study import to_target
from minmaxcon_problems.fair_auc.study.to_target import OURS, Instance, Look, bench_target, first_within, synthetic_rows

pytest.importorskip("cvxpy", reason="f* is a conic solver's: pip install -e '.[reference]'")


@pytest.fixture(scope="module")
def result():
    return bench_target(
        data=("synthetic",), rows=(400,), features=(4,), targets=(0.1, 0.01), repeats=2, limit=1.5, search=0.01
    )


def test_a_row_for_every_method_and_target(result):
    methods = {one.method for one in result.reached}
    assert {OURS, "Clarabel, rows", "Clarabel, moments by hand"} <= methods
    assert len(result.reached) == 2 * len(methods)
    for one in result.reached:
        assert (one.rows, one.features, one.metric) == (400, 4, "inter_group")
        if not one.method.startswith(("cooper", "humancompatible")):
            assert one.seconds is not None
            assert one.reached == one.repeats
    by_target = {one.target: one for one in result.reached if one.method == OURS}
    assert by_target[0.1].seconds <= by_target[0.01].seconds
    assert by_target[0.1].samples <= by_target[0.01].samples


def test_result_as_data_table_and_figure(result):
    back = json.loads(to_json(result.as_dict()))
    assert len(back["reached"]) == len(result.reached)
    text = result.table()
    assert all(word in text for word in (OURS, "seconds to 10%", "samples to 1%", "synthetic"))
    assert max(map(len, text.splitlines())) <= 180
    titles = [axes.get_title() for axes in result.figure().axes]
    assert titles == ["4 features, within 10%", "4 features, within 1%"]


def test_only_feasible_points_count():
    instance = Instance("d", "m", 10, 2, to_target._synthetic, first=1.0, optimum=0.5)
    looks = [Look(1.0, 10, 0.5, 0.1), Look(2.0, 20, 0.7, -0.1), Look(3.0, 30, 0.502, 0.0), Look(4.0, 40, 0.5, -1.0)]
    assert first_within(instance, looks, 0.01) == looks[2]
    assert first_within(instance, looks, 0.5) == looks[1]
    assert first_within(instance, looks[:2], 0.01) is None
    assert instance.within(Look(0.0, 0, 0.4, math.nan)) == math.inf


def test_both_conic_forms_agree_with_the_problem():
    instance = to_target._synthetic(200, 3, 0.2, 1)
    by_rows = to_target._by_rows(instance.build("numpy", "float64"))
    assert instance.within(by_rows) == pytest.approx(0.0, abs=1e-5)
    assert instance.within(to_target._by_moments(instance)) == pytest.approx(0.0, abs=1e-7)


def test_the_constraints_of_the_synthetic_data_are_active():
    """Without them a smaller objective is reached, or nothing would be measured."""
    instance = to_target._synthetic(400, 4, 0.2, 0)
    assert to_target._synthetic(400, 4, 3.0, 0).optimum < instance.optimum - 0.02 * (instance.first - instance.optimum)
    rows = synthetic_rows(400, 4, 0)
    assert (np.sum(rows.label > 0), np.sum(rows.group > 0), np.sum((rows.label > 0) & (rows.group > 0))) == (
        120,
        100,
        20,
    )


def test_a_missing_package_is_noted(monkeypatch):
    monkeypatch.setattr(to_target, "installed_peers", lambda *_: ([], ["gone is not installed."]))
    found = bench_target(data=("synthetic",), rows=(200,), features=(3,), targets=(0.2,), repeats=1, conic=False)
    assert {one.method for one in found.reached} == {OURS}
    assert "gone is not installed." in found.table()


def test_a_method_without_a_median_is_not_run_again(monkeypatch):
    """Half of the repeats have missed: the others cannot change what is printed."""
    seeds = []

    def missed(instance, *rest):
        seeds.append(rest[-1])
        return [Look(1.0, 10, instance.optimum, 0.0 if rest[-1] == 7 else 1.0)]

    monkeypatch.setattr(to_target, "_ours", missed)
    small = {"data": ("synthetic",), "rows": (200,), "features": (3,), "peers": False, "conic": False}
    found = bench_target(**small, repeats=5, seed=7)
    assert seeds == [7, 8, 9, 10]
    assert {(one.seconds, one.reached, one.repeats) for one in found.reached} == {(None, 1, 4)}


def test_what_is_not_tried_on_many_numbers_is_noted(monkeypatch):
    monkeypatch.setattr(to_target, "_CONIC_NUMBERS", 100)
    monkeypatch.setattr(to_target, "_PEER_NUMBERS", 100)
    monkeypatch.setattr(to_target, "_ours", lambda *_: [])
    found = bench_target(data=("synthetic",), rows=(200,), features=(3,), repeats=1)
    assert {one.method for one in found.reached} == {OURS, "Clarabel, moments by hand"}
    assert len(found.notes) == 2
    assert all("not tried above 100 numbers" in note for note in found.notes)


@pytest.mark.parametrize(
    "argument, value",
    [("limit", 0.0), ("search", math.nan), ("rows", ()), ("rows", (5,)), ("repeats", 0), ("targets", (1.5,))],
)
def test_numbers_out_of_range_are_refused_by_name(argument, value):
    with pytest.raises(mm.InvalidInput, match=f"^{argument}="):
        bench_target(**{"data": ("synthetic",), argument: value})


def test_the_command_leaves_out_what_it_is_told_to(call, tmp_path):
    small = ("--data", "synthetic", "--rows", 200, "--features", 3, "--repeats", 1, "--limit", 1, "--quiet")
    done = call("bench", "target", *small, "--no-peers", "--no-conic", "--figure", tmp_path / "t.png", "--json")
    assert done.status == 0, done.err
    assert {one["method"] for one in json.loads(done.out)["reached"]} == {OURS}
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    refused = call("bench", "target", "--rows", "many")
    assert (refused.status, "--rows" in refused.err) == (2, True)

"""Promises about whole runs: the same bits in every process, nothing left behind, no surprise at the edges of the data.

The promises about one object stand beside the tests of that object; ``docs/figures/reliability.py`` names all.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import minmaxcon as mm
from minmaxcon.errors import MinMaxConError
from minmaxcon_problems.fair_auc import FairAUCClassifier
from tests import cases
from tests.figures import Figure
from tests.fuzzing import guided, readers
from tests.problem_library import HalfSquare, Linear, Robust, WorstGroup
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows

QUICK = mm.SFLS(mm.SMD(steps=40, batch_size=20), levels=2)

DIGEST = """
import hashlib
import numpy as np
import minmaxcon as mm
from tests import cases

digest = hashlib.sha256()
for name in ("fair_auc_inter", "worst_group"):
    for oracle in (mm.SMD(steps=100, batch_size=30), mm.VarianceReduced(epochs=1), mm.MirrorProx(steps=10)):
        found = mm.solve(cases.problem(name), mm.SFLS(oracle, levels=2), seed=3)
        digest.update(np.ascontiguousarray(found.x).tobytes() + np.ascontiguousarray(found.constraints).tobytes())
        digest.update(repr((found.objective, found.certificate, found.status, found.reason, found.steps)).encode())
        for column, values in found.trace.items():
            digest.update(column.encode() + np.ascontiguousarray(values).tobytes())
print(digest.hexdigest())
"""

MINI_BATCHES = """
import hashlib
import numpy as np
import minmaxcon as mm
from tests import cases

problem = cases.fair_auc(rows=cases.labelled(4, n=5_000, d=120))
start = mm.Start(problem.start_point(1), None, mm.Position.start(np.random.default_rng(5)))
found = mm.SMD(steps=300, batch_size=200).query(problem.at_level(np.array([0.6])), start)
print(hashlib.sha256(np.ascontiguousarray(found.x).tobytes()).hexdigest())
"""


def printed(program: str, **variables: str) -> str:
    """Return what a program prints in a process of its own."""
    root = Path(__file__).parents[1]
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(root / "problems")])} | variables
    done = subprocess.run([sys.executable, "-c", program], env=surroundings, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.rel
@pytest.mark.slow
def test_20_processes_give_one_digest(figure: Figure) -> None:
    found = [printed(DIGEST, PYTHONHASHSEED=str(seed)) for seed in range(20)]
    figure.count(found.count(found[0]), len(found), "processes with the digest of the first")
    assert len(set(found)) == 1


@pytest.mark.rel
def test_one_and_two_threads_take_the_same_mini_batch_steps(figure: Figure) -> None:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    one, two = (printed(MINI_BATCHES, **dict.fromkeys(names, threads)) for threads in ("1", "2"))
    figure.count(one == two, 1, "digests alike")
    assert one == two


@pytest.mark.parametrize("seeds", [2, pytest.param(200, marks=pytest.mark.rel)])
def test_global_generators_are_neither_read_nor_moved(seeds: int, figure: Figure) -> None:
    rows, untouched = biased_rows(120, seed=0), 0
    for seed in range(seeds):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        before = random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes()
        name = cases.TYPICAL[seed % len(cases.TYPICAL)]
        solver = mm.IQRC(QUICK, iterations=2) if name == "regression_weakly_convex" else QUICK
        mm.solve(cases.problem(name), solver, seed=7)
        if seed % 20 == 0:
            FairAUCClassifier(max_gap=0.1, random_state=7).fit(rows.X, rows.y, sensitive_features=rows.group)
        after = random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes()
        untouched += before == after
    figure.count(untouched, seeds, "solves that leave them as they were")
    assert untouched == seeds


def drawn(seed: int) -> mm.MinMaxProblem:
    """Return a small convex problem of one of five kinds."""
    kind, rng = seed % 5, np.random.default_rng(seed)
    if kind == 0:
        return cases.fair_auc(
            ["group", "inter_group", "intra_group"][seed // 5 % 3], 0.3, rows=cases.labelled(seed, n=120)
        )
    rows = cases.arrays(seed)
    data = mm.Finite({name: rows[name] for name in ("points", "costs", "shares")})
    ball, bound = mm.Ball(3, 6.0), float(rng.uniform(0.2, 1.0))
    if kind == 1:
        return mm.MinMaxProblem(HalfSquare(), [Linear(bound)], ball, data)
    if kind == 2:
        return mm.MinMaxProblem(HalfSquare(), [Linear(-0.5, sign=-1.0)], mm.Simplex(3), data)
    if kind == 3:
        return mm.MinMaxProblem(HalfSquare(), [Robust(3, 0.3, bound)], ball, data)
    return mm.MinMaxProblem(WorstGroup(3, temperature=0.5), [Linear(bound)], ball, data)


@pytest.mark.rel
def test_30_small_problems_end_within_a_hundredth_of_a_conic_solver(figure: Figure) -> None:
    """A hundredth of what can be gained from the start, of which solvers promise half, or of the optimum where more."""
    from minmaxcon.reference import solve_exact

    feasible, gaps = 0, list[float]()
    for seed in range(30):
        problem = drawn(seed)
        found, exact = mm.solve(problem, seed=seed, time_limit=20.0), solve_exact(problem).objective
        start = float(problem.at_level(0.0).values(problem.start_point())[0, 0])
        feasible += bool(found.feasible)
        assert found.certificate.lower <= exact + 1e-6 * (1 + abs(exact))
        gaps.append((found.objective - exact) / max(abs(start - exact), abs(exact)))
    figure.count(feasible, len(gaps), "solutions feasible")
    figure.count(sum(gap <= 0.01 for gap in gaps), len(gaps), "solutions within 1%")
    figure.largest("gap", 100 * max(gaps), "%")
    assert feasible == len(gaps)
    assert max(gaps) <= 0.01


@pytest.mark.rel
@pytest.mark.slow
def test_a_million_steps_in_single_precision_stay_near_double(figure: Figure) -> None:
    """Rounding accumulates neither in the averages nor in the weights, and large gradients overflow nothing."""
    pytest.importorskip("jax")  # compiled, steps take microseconds
    found = {}
    for dtype, factor in itertools.product(("float32", "float64"), (1.0, 1e4)):
        rows = cases.arrays()
        arrays = {name: (factor * rows[name]) for name in ("points", "costs")}
        data = mm.Finite(arrays, dtype=dtype, engine="jax")
        problem = mm.MinMaxProblem(HalfSquare(), [Linear(0.5 * factor)], mm.Ball(3, 6.0 * factor), data)
        start = mm.Start(problem.start_point(1), None, mm.Position.start(np.random.default_rng(0)))
        estimate = mm.SMD(steps=1_000_000, batch_size=1).query(problem.at_level(np.array([2.0 * factor**2])), start)
        found[dtype, factor] = np.asarray(estimate.x), np.asarray(estimate.weights)
    for factor in (1.0, 1e4):
        (single, weights), (double, _) = found["float32", factor], found["float64", factor]
        figure.largest("difference", np.abs(single / factor - double / factor).max())
        figure.largest("deviation of a sum of weights", np.abs(weights.sum(-1) - 1.0).max())
        assert single.dtype == np.float32
        np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-6)
        np.testing.assert_allclose(single / factor, double / factor, atol=1e-6)


@pytest.mark.rel
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_500_fits_leave_nothing_behind(figure: Figure) -> None:
    rows = biased_rows(60, seed=1)

    def fit(seed: int) -> None:
        """One in ten chooses its ridge penalty by itself."""
        model = FairAUCClassifier(max_gap=0.1, alpha=None if seed % 10 == 0 else 1000.0, random_state=seed)
        model.fit(rows.X, rows.y, sensitive_features=rows.group)

    def held() -> tuple[float, int, int]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return (
            pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            len(list(Path("/proc/self/fd").iterdir())),
            threading.active_count(),
        )

    for seed in range(20):
        fit(seed)
    memory, descriptors, threads = held()
    for seed in range(500):
        fit(seed)
    after = held()
    figure.largest("growth of memory", after[0] - memory, "MB")
    figure.total(after[1] - descriptors, "descriptors more")
    figure.total(after[2] - threads, "threads more")
    assert after[0] <= memory + 20
    assert after[1:] == (descriptors, threads)


def edge(seed: int) -> tuple[Rows, dict[str, Any]]:
    """Draw rows at an edge of what can be fitted, and settings."""
    rng = np.random.default_rng(seed)
    rows = biased_rows(int(rng.choice([2, 3, 5, 12, 40])), seed)
    kind = rng.integers(9)
    features, label, group = rows.X.copy(), rows.y.copy(), rows.group.copy()
    if kind == 0:
        label[:] = label[0]
    elif kind == 1:
        group[:] = group[0]
    elif kind == 2:
        features[:, 1] = 3.7
    elif kind == 3:
        features = features[:, :1]
    elif kind == 4:
        features[:] = features[0]
    elif kind == 5:
        features[:, 0] = np.where(label == "yes", 1e8, -1e8)
    elif kind == 6:
        group = np.where(label == "yes", "a", "b")
    elif kind == 7:  # a group of one row or two, which hardly any batch has
        group[:] = group[0]
        group[[0, -1]] = "rare"
    options: list[dict[str, Any]] = [{"max_gap": 0.0}, {"max_gap": 0.05}, {"kappa": 0.0}, {"kappa": 0.2}, {}]
    chosen = dict(options[rng.integers(len(options))], metric=str(rng.choice(["group", "inter_group", "intra_group"])))
    return Rows(features, label, group), chosen


@pytest.mark.parametrize("count", [6, pytest.param(200, marks=pytest.mark.rel)])
def test_data_at_the_edge_are_fitted_or_refused_in_one_line(count: int, figure: Figure) -> None:
    fitted, said = 0, list[str]()
    for seed in range(count):
        rows, options = edge(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            try:
                # Fits that go on to their last step end early, but for some.
                model = FairAUCClassifier(**options, random_state=0, time_limit=20.0 if seed % 4 == 0 else 0.2)
                model.fit(rows.X, rows.y, sensitive_features=rows.group)
            except MinMaxConError as error:
                said.append(str(error))
                continue
        fitted += 1
        assert isinstance(model.status_, mm.Status)
        assert np.isfinite(model.decision_function(rows.X)).all()
    figure.count(fitted, count, "data sets fitted, the others refused")
    assert 0 < fitted < count
    assert not [text for text in said if "\n" in text]


@pytest.mark.parametrize("count", [2, pytest.param(12, marks=pytest.mark.rel)])
def test_batches_without_a_member_of_a_group_are_taken(count: int, figure: Figure) -> None:
    """Of 40 rows four have one of the groups, and a batch has a row or two."""
    for seed in range(count):
        rows = cases.labelled(seed, n=40)
        rows = replace(rows, group=np.where(np.arange(40) < 4, rows.group, 1))
        problem = cases.fair_auc(["group", "inter_group", "intra_group"][seed % 3], [0.0, 0.3][seed % 2], rows=rows)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = mm.solve(problem, mm.SFLS(mm.SMD(steps=30, batch_size=1 + seed % 2), levels=2), seed=seed)
        assert found.status is not mm.Status.DIVERGED
        assert np.isfinite(found.x).all()
        assert found.feasible is bool(found.constraints.max() <= 0)
    figure.total(count, "solves with batches that lack a group")


FUZZ = float(os.environ.get("FUZZ_SECONDS", "120"))
"""Seconds for each reader."""


@pytest.mark.parametrize("seconds", [0.1, pytest.param(FUZZ, marks=[pytest.mark.rel, pytest.mark.slow])])
@pytest.mark.parametrize("reader", readers.READERS)
def test_spoilt_files_are_read_or_refused_in_one_line(
    reader: str, seconds: float, tmp_path: Path, figure: Figure
) -> None:
    """At the full count changes are chosen by Atheris, where it is installed."""
    by_coverage = seconds >= 1 and find_spec("atheris") is not None
    files, refused = (guided if by_coverage else readers).tried(reader, seconds, tmp_path)
    by = "Atheris" if by_coverage else "Hypothesis"
    figure.count(refused, files, f"files spoilt by {by} refused, the others read")
    assert 0 < refused <= files


def test_a_spoilt_file_that_is_neither_read_nor_refused_is_noticed(tmp_path: Path) -> None:
    def case(raised: Exception | None) -> readers.Case:
        def read(path: Path) -> None:
            assert path.read_bytes() == b"spoilt"
            if raised is not None:
                raise raised

        return readers.Case("file", st.just(b"spoilt"), read)

    assert readers.attempt(case(mm.DataError("file", "is spoilt.")), b"spoilt", tmp_path)
    assert not readers.attempt(case(None), b"spoilt", tmp_path)
    wrong: list[tuple[Exception, type[Exception]]] = [
        (KeyError("x"), KeyError),
        (RuntimeWarning("x"), RuntimeWarning),
        (mm.DataError("file", "x" * 5000), AssertionError),
    ]
    for raised, kind in wrong:
        with pytest.raises(kind):
            readers.attempt(case(raised), b"spoilt", tmp_path)

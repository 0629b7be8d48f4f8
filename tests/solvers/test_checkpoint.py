"""Checkpoints: a solve goes on from disk with the same bits, whatever ended it, and from its own checkpoint alone."""

from __future__ import annotations

import errno
import importlib.metadata
import io
import itertools
import json
import os
import shutil
import signal
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon import files
from minmaxcon.solvers import checkpoint as module
from minmaxcon.solvers.checkpoint import CHECKPOINT_FILE, Checkpoints, settings_of
from minmaxcon_problems.fair_auc import stream_problem
from minmaxcon_problems.fair_auc.target.problem import Target, build_target_problem
from tests import cases
from tests.figures import Figure
from tests.fuzzing.drawn import sealed
from tests.problem_library import HalfSquare, Linear
from tests.problems.fair_auc.streams import singles
from tests.solvers.averaging.rivals import small
from tests.solvers.successive.test_successive_streams import Plane, streamed
from tests.staircases import Varying, staircase

SOLVER = mm.SFLS(oracle=mm.SMD(steps=100, batch_size=20, block=40), levels=3, tolerance=1e-6)


IQRC = mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=60, batch_size=20, block=25), levels=2), iterations=2)


def points() -> Any:
    return singles(cases.labelled(3, n=400))


class Unlisted(Plane):
    """Keeps no list of its blocks, as a solve may not change what its checkpoint is compared by."""

    def on(self, data: Any) -> Plane:
        return Plane(data)


CASES: dict[str, tuple[Callable[[], mm.MinMaxProblem], Callable[[], mm.Solver]]] = {
    "sfls": (lambda: cases.problem("fair_auc_inter"), lambda: SOLVER),
    "torch": (lambda: cases.problem("fair_auc_torch"), lambda: SOLVER),
    "search": (lambda: cases.problem("quadratic_infeasible_start"), lambda: SOLVER),
    "simplex": (lambda: cases.problem("portfolio"), lambda: IQRC),
    "runs": (lambda: cases.fair_auc("inter_group", [0.05, 0.1, 0.5]), lambda: IQRC),
    "theory": (lambda: cases.problem("worst_group"), lambda: mm.SFLS(oracle=cases.ORACLES["theory"](), levels=3)),
    "mirror_prox": (lambda: cases.problem("worst_group"), lambda: mm.SFLS(oracle=mm.MirrorProx(steps=60), levels=3)),
    "reduced": (
        lambda: cases.problem("fair_auc_inter"),
        lambda: mm.SFLS(oracle=mm.VarianceReduced(epochs=3, batch_size=30), levels=2),
    ),
    "conex": (lambda: cases.problem("fair_auc_inter"), lambda: small("conex", steps=400)),
    "switching": (lambda: cases.problem("fair_auc_inter"), lambda: small("switching", steps=900)),
    "successive": (lambda: staircase(kind=Varying), lambda: mm.SuccessiveApproximation(iterations=12)),
    "stream": (lambda: stream_problem(points, kappa=0.3), lambda: SOLVER),
    "blocks": (lambda: streamed(measure=Unlisted()), lambda: mm.SuccessiveApproximation(sample=50, iterations=12)),
}


def stopping(after: int) -> Callable[[mm.Progress], bool]:
    """Return a callback that ends a solve after so many pieces of work."""
    left = [after]

    def stop(_: mm.Progress) -> bool:
        left[0] -= 1
        return left[0] < 0

    return stop


def same(one: mm.Solution, other: mm.Solution) -> bool:
    """Whether two solutions have the same bits, the time that they took aside."""
    return (
        one.x.tobytes() == other.x.tobytes()
        and all(
            repr(getattr(one, part)) == repr(getattr(other, part))
            for part in ("objective", "constraints", "status", "certificate", "reason", "steps", "samples")
        )
        and {name: column.tolist().__repr__() for name, column in one.trace.items()}
        == {name: column.tolist().__repr__() for name, column in other.trace.items()}
    )


@pytest.mark.parametrize("name", cases.promises(CASES, set(CASES) - {"theory", "mirror_prox", "switching"}))
def test_a_solve_goes_on_from_disk_with_the_same_bits(name: str, tmp_path: Path) -> None:
    """Ended twice, each time going on with a problem and a solver that were made anew."""
    problem, solver = CASES[name]
    expected = mm.solve(problem(), solver(), seed=3, budget=280)
    ended = mm.solve(problem(), solver(), seed=3, checkpoint=tmp_path, callbacks=[stopping(2)])
    mm.solve(problem(), solver(), seed=3, resume=tmp_path, every=0, callbacks=[stopping(2)])
    found = mm.solve(problem(), solver(), seed=3, resume=tmp_path, budget=280)
    assert same(found, expected)
    assert ended.steps <= found.steps
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT_FILE]


@pytest.mark.rel
@pytest.mark.parametrize(
    "name, solver",
    [
        (name, solver)
        for name, solver in itertools.product(cases.PROBLEMS, cases.SOLVERS)
        if name not in cases.ALIKE and (solver not in cases.RIVALS or name in cases.TYPICAL)
    ],
)
def test_every_solver_goes_on_with_every_problem(name: str, solver: str, tmp_path: Path) -> None:
    if cases.SOLVERS[solver].convex_only and not cases.PROBLEMS[name].convex:
        pytest.skip("needs convex functions")
    build, make = cases.PROBLEMS[name].build, cases.SOLVERS[solver]
    expected = mm.solve(build(), make(), budget=300)
    ended = mm.solve(build(), make(), budget=300, checkpoint=tmp_path / "c", callbacks=[stopping(1)])
    assert ended.steps < expected.steps
    assert same(mm.solve(build(), make(), budget=300, resume=tmp_path / "c"), expected)


@pytest.mark.rel
@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize("solver", ["sfls", "single_samples", "iqrc"])
def test_split_resume(solver: str, engine: str, tmp_path: Path, figure: Figure) -> None:
    """50 random splits, within queries and between them."""
    sfls, single = (mm.SFLS(mm.SMD(steps=30, batch_size=size, block=8), levels=2) for size in (20, 1))
    iqrc = mm.IQRC(mm.SFLS(mm.SMD(steps=20, batch_size=20, block=5), levels=1), iterations=2)
    make = {"sfls": lambda: sfls, "single_samples": lambda: single, "iqrc": lambda: iqrc}[solver]
    problem, rng = cases.fair_auc(kappa=0.1, engine=engine), np.random.default_rng(0)
    count = len(list(mm.iterate(problem, make())))
    expected, splits, alike = mm.solve(problem, make()), 50, 0
    for i in range(splits):
        folder = tmp_path / str(i)
        mm.solve(problem, make(), checkpoint=folder, callbacks=[stopping(int(rng.integers(count)))])
        alike += same(mm.solve(problem, make(), resume=folder), expected)
    figure.count(alike, splits, "splits gone on with the same bits")
    assert alike == splits


@dataclass(frozen=True, eq=False, slots=True)
class Hidden:
    """A state of a stranger's solver: the runs' own, and what the constructor takes."""

    inner: Any
    memory: Any


class Stranger(mm.Solver):
    """A solver of someone else, around SFLS, with things of its own in its state."""

    def __init__(self, memory: Callable[[], Any]) -> None:
        self.memory = memory
        self.own = SOLVER

    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> Hidden:
        return Hidden(self.own.init(problem, start), self.memory())

    def step(self, state: Hidden) -> Hidden:
        return replace(state, inner=self.own.step(state.inner))

    def finished(self, state: Hidden) -> bool:
        return self.own.finished(state.inner)

    def outcome(self, state: Hidden) -> mm.Outcome:
        return self.own.outcome(state.inner)


def values() -> Any:
    return {
        "numbers": (1, 2.5, float("inf"), -0.0, None, True, 2**80, "text \u00e9", np.float32(0.1), np.bool_(True)),
        "arrays": [np.arange(3), np.zeros((0, 2)), np.array("a"), np.asfortranarray(np.eye(3)), np.array(1 + 2j)],
        "status": mm.Status.SOLVED,
        "position": mm.Position.start(np.random.Generator(np.random.MT19937(0))),
    }


def test_a_strangers_state_of_plain_values_is_kept(tmp_path: Path) -> None:
    problem = cases.problem("fair_auc_inter")
    mm.solve(problem, Stranger(values), checkpoint=tmp_path, callbacks=[stopping(2)])
    found: list[Any] = []
    mm.solve(problem, Stranger(values), resume=tmp_path, callbacks=[lambda progress: found.append(progress.state)])
    memory, expected = found[0].memory, values()
    assert repr(memory["numbers"]) == repr(expected["numbers"])
    assert [type(value) for value in memory["numbers"]] == [type(value) for value in expected["numbers"]]
    for one, other in zip(memory["arrays"], expected["arrays"], strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    assert memory["arrays"][3].flags.f_contiguous  # products of matrices depend on it
    assert memory["status"] is mm.Status.SOLVED
    assert memory["position"].rng().random() == expected["position"].rng().random()


@pytest.mark.parametrize(
    "bad",
    [
        *(lambda: lambda x: x, lambda: {1: 2}, lambda: np.array([{}]), lambda: iter([1]), Path),
        cases.quadratic,  # a problem that is not made of the solve's own
        staircase,
    ],
)
def test_what_no_checkpoint_can_hold_is_refused_before_any_work(bad: Callable[[], Any], tmp_path: Path) -> None:
    seen: list[Any] = []
    with pytest.raises(mm.Unsupported, match=r"state\.memory is an? .*no checkpoint can hold"):
        mm.solve(cases.problem("fair_auc_inter"), Stranger(bad), checkpoint=tmp_path, callbacks=[seen.append])
    assert len(seen) == 1
    assert list(tmp_path.iterdir()) == []


class Secret(HalfSquare):
    """A parameter that no public attribute shows."""

    def __init__(self, secret: float) -> None:
        super().__init__()
        self._secret = secret

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(self._secret * found.F, found.G, lambda y, a: self._secret * found.pullback(y, a))


def quadratic(objective: mm.StochasticMinMaxConstraint | None = None, bound: Any = 0.5, **changes: Any) -> Any:
    drawn = cases.arrays()
    given = {"points": drawn["points"] + changes.pop("moved", 0.0), "costs": drawn["costs"]}
    options = {"start": np.array([-1.0, -1.0, -1.0]), **changes}
    radius = options.pop("radius", 6.0)
    objective = HalfSquare() if objective is None else objective
    return mm.MinMaxProblem(objective, [Linear(bound)], mm.Ball(3, radius), mm.Finite(given), **options)


@pytest.mark.parametrize(
    "problem, arguments, named",
    [
        (lambda: quadratic(bound=0.6), {}, "constraints[0].bound = 0.5, and this solve has 0.6"),
        (lambda: quadratic(radius=5.0), {}, "primal.radius = 6.0, and this solve has 5.0"),
        (lambda: quadratic(moved=1e-9), {}, "data.arrays['points'] = float64(120, 3)"),
        (lambda: quadratic(HalfSquare(scale=2.0)), {}, "objective.scale = 1.0, and this solve has 2.0"),
        (lambda: quadratic(Linear()), {}, "objective"),
        (lambda: quadratic(start=np.array([-1.0, -1.0, -0.9])), {}, "start"),
        (lambda: quadratic(), {"seed": 1}, "seed = 0, and this solve has 1"),
        (lambda: quadratic(), {"x0": np.array([-1.0, -1.0, -1.0])}, "x0 = None"),
        (
            lambda: quadratic(),
            {"solver": mm.SFLS(oracle=mm.SMD(steps=100, batch_size=20, block=40), levels=3, tolerance=1e-5)},
            "solver.tolerance = 1e-06, and this solve has 1e-05",
        ),
        (lambda: quadratic(), {"solver": mm.SFLS(oracle=mm.SMD(steps=101, batch_size=20, block=40))}, "solver.levels"),
        (lambda: quadratic(), {"solver": mm.IQRC()}, "solver.class"),
    ],
)
def test_another_solves_checkpoint_is_refused_by_name(
    problem: Callable[[], Any], arguments: dict[str, Any], named: str, tmp_path: Path
) -> None:
    mm.solve(quadratic(), SOLVER, checkpoint=tmp_path, callbacks=[stopping(2)])
    before = (tmp_path / CHECKPOINT_FILE).read_bytes()
    with pytest.raises(mm.InvalidInput) as refusal:
        mm.solve(problem(), **{"solver": SOLVER, **arguments}, resume=tmp_path)
    assert named in str(refusal.value)
    assert str(refusal.value).startswith("resume=")
    assert (tmp_path / CHECKPOINT_FILE).read_bytes() == before


def test_a_solve_goes_on_from_its_own_start_alone(tmp_path: Path) -> None:
    begun, other = np.array([-1.0, 0.5, 0.0]), np.array([-1.0, 0.5, 1e-9])
    whole = mm.solve(quadratic(), SOLVER, x0=begun)
    mm.solve(quadratic(), SOLVER, x0=begun, checkpoint=tmp_path, callbacks=[stopping(2)])
    with pytest.raises(mm.InvalidInput, match="was written with x0 ="):
        mm.solve(quadratic(), SOLVER, x0=other, resume=tmp_path)
    assert same(mm.solve(quadratic(), SOLVER, x0=begun, resume=tmp_path), whole)


def test_what_a_function_hides_shows_in_its_values(tmp_path: Path) -> None:
    mm.solve(quadratic(Secret(1.0)), SOLVER, checkpoint=tmp_path, callbacks=[stopping(2)])
    with pytest.raises(mm.InvalidInput, match="values at the start"):
        mm.solve(quadratic(Secret(1.001)), SOLVER, resume=tmp_path)
    mm.solve(quadratic(Secret(1.00005)), SOLVER, resume=tmp_path)  # as near as sums of many rows by other threads


@pytest.mark.parametrize("name", [*CASES, "target"])
def test_a_solve_does_not_change_what_its_checkpoint_is_compared_by(name: str) -> None:
    if name == "target":
        problem: Any = mm.load_problem("fair_auc", data="loanapp", max_gap=0.02)
        solver: mm.Solver = mm.SuccessiveApproximation()
    else:
        problem, solver = (make() for make in CASES[name])
    before = settings_of(problem, solver, 0, None)
    mm.solve(problem, solver, budget=60)
    after = settings_of(problem, solver, 0, None)
    assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} <= {"measure.asked"}


def test_the_clock_goes_on_from_the_last_checkpoint_however_slow_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, written = cases.problem("fair_auc_inter"), module.replace_file

    def slow(path: Path, content: bytes) -> None:
        time.sleep(0.6)
        written(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(module, "replace_file", slow)
        first = mm.solve(problem, SOLVER, checkpoint=tmp_path, budget=120)
    assert mm.solve(problem, SOLVER, resume=tmp_path).seconds > first.seconds


def test_a_limit_may_be_another_when_the_solve_goes_on(tmp_path: Path) -> None:
    problem, solver = cases.problem("fair_auc_inter"), SOLVER
    first = mm.solve(problem, solver, checkpoint=tmp_path, budget=120)
    assert "budget" in first.reason
    found = mm.solve(problem, solver, resume=tmp_path, time_limit=600.0)
    assert same(found, mm.solve(problem, solver))
    assert found.seconds > first.seconds
    again = mm.solve(problem, solver, resume=tmp_path)  # a solve that has ended is over
    assert same(again, found)


def test_folders(tmp_path: Path) -> None:
    """Nothing is overwritten, nothing is begun by mistake, and one command line serves both the first and the next."""
    problem, there = cases.problem("fair_auc_inter"), tmp_path / "a" / "b"
    with pytest.raises(mm.InvalidInput, match=r"resume=.*cannot be read .No such file"):
        mm.solve(problem, SOLVER, resume=there)
    first = mm.solve(problem, SOLVER, checkpoint=there, resume=there, budget=80)
    with pytest.raises(mm.InvalidInput, match=r"checkpoint=.*holds a checkpoint already; resume"):
        mm.solve(problem, SOLVER, checkpoint=there)
    other = tmp_path / "c"
    second = mm.solve(problem, SOLVER, checkpoint=other, resume=there, budget=200)
    third = mm.solve(problem, SOLVER, checkpoint=there, resume=there, budget=200)
    assert same(second, third)
    assert first.steps < second.steps
    with pytest.raises(mm.InvalidInput, match="every=-1"):
        mm.solve(problem, SOLVER, checkpoint=tmp_path / "d", every=-1)
    for empty in ({"checkpoint": ""}, {"resume": " "}):
        with pytest.raises(mm.InvalidInput, match=rf"{next(iter(empty))}=' ?': must name a folder\."):
            mm.solve(problem, SOLVER, **empty)
    (tmp_path / "file").write_text("")
    with pytest.raises(mm.InvalidInput, match=rf"checkpoint='{tmp_path / 'file'}': cannot be written"):
        mm.solve(problem, SOLVER, checkpoint=tmp_path / "file")


def test_a_problem_of_surrogates_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    """Its measure and the problem that is solved first are parts of it, and no part of the file."""
    asked = Target(metric="inter_group", max_gap=0.02)

    def solve(**settings: Any) -> mm.Solution:
        return mm.solve(build_target_problem(cases.labelled(n=120), asked), mm.SuccessiveApproximation(), **settings)

    ended = solve(checkpoint=tmp_path, callbacks=[stopping(1)])
    found = solve(resume=tmp_path)
    assert same(found, solve())
    assert ended.steps < found.steps


def test_other_versions_are_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = cases.problem("fair_auc_inter")
    mm.solve(problem, SOLVER, checkpoint=tmp_path, budget=80)
    monkeypatch.setattr(module, "_versions", lambda: {"python": "3.99", "numpy": np.__version__})
    with pytest.warns(mm.CheckpointWarning, match="written with python"):
        mm.solve(problem, SOLVER, resume=tmp_path)


def test_what_last_bits_depend_on_is_written() -> None:
    found = module._versions()
    assert found.pop("machine") == os.uname().machine
    assert int(found.pop("threads")) >= 1
    assert found == {
        "python": sys.version.split()[0],
        **{name: importlib.metadata.version(name) for name in ("minmaxcon", "numpy", "torch")},
    }
    assert files.installed_version("minmaxcon-that-is-not-there") is None


# ------------------------------------------------------------------------------------------------ damaged and forged


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Give a checkpoint as it is written."""
    folder = tmp_path_factory.mktemp("written")
    mm.solve(cases.problem("fair_auc_inter"), SOLVER, checkpoint=folder, callbacks=[stopping(3)])
    return (folder / CHECKPOINT_FILE).read_bytes()


def reader(folder: Path) -> Checkpoints:
    problem = cases.problem("fair_auc_inter")
    return Checkpoints(folder, problem, settings_of(problem, SOLVER, 0))


def damages(content: bytes, other: bytes, flips: int, cuts: int, splices: int) -> Any:
    rng = np.random.default_rng(0)
    for place in [*range(90), *rng.integers(len(content), size=flips)]:
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        yield bytes(changed)
    for length in [0, 1, len(content) - 1, *rng.integers(len(content), size=cuts)]:
        yield content[:length]
    for _ in range(splices):
        i, j = rng.integers(1, len(content), size=2)
        yield content[:i] + other[j:]
    yield content + b"\0"


def check_damages(folder: Path, content: bytes, flips: int, cuts: int, splices: int) -> int:
    """See that each damage is noticed, and return how many there were."""
    keeper = reader(folder)
    (folder / CHECKPOINT_FILE).write_bytes(content)
    mm.solve(cases.problem("fair_auc_inter"), SOLVER, resume=folder, callbacks=[stopping(1)])
    other, count = (folder / CHECKPOINT_FILE).read_bytes(), 0
    for changed in damages(content, other, flips, cuts, splices):
        if changed in (content, other):
            continue
        (folder / CHECKPOINT_FILE).write_bytes(changed)
        with pytest.raises(mm.CorruptCheckpoint):
            keeper.read()
        count += 1
    assert count >= 0.99 * (flips + cuts + splices)
    return count


def test_damage_is_noticed(tmp_path: Path, content: bytes) -> None:
    check_damages(tmp_path, content, 100, 20, 20)


@pytest.mark.rel
def test_bitflips(tmp_path: Path, content: bytes, figure: Figure) -> None:
    figure.total(check_damages(tmp_path, content, 5000, 500, 500), "damaged checkpoints, each refused")


def forged(content: bytes, change: Callable[[Any], Any]) -> bytes:
    """Return a checkpoint whose manifest was changed, with a digest that fits."""
    body = content.partition(b"\n")[2]
    with np.load(io.BytesIO(body)) as archive:
        held = dict(archive)
    manifest = json.loads(held.pop("manifest").tobytes())
    manifest = change(manifest) or manifest
    return module._packed(manifest, [held[f"array{i}"] for i in range(len(held))])


def put(path: str, value: Any) -> Callable[[Any], None]:
    """Return a change of one entry of a manifest."""

    def change(manifest: Any) -> None:
        *parents, last = path.split("/")
        for part in parents:
            manifest = manifest[part]
        manifest[last] = value

    return change


def deep(manifest: Any) -> None:
    tree: Any = 1
    for _ in range(400):
        tree = [tree]
    manifest["state"]["fields"]["steps"] = tree


FORGERIES: dict[str, Callable[[Any], Any]] = {
    "no state": lambda manifest: {"settings": manifest["settings"]},
    "text": lambda _: "text",
    "list": lambda _: [1],
    "another class": put("state/class", "minmaxcon.core.solver:Outcome"),
    "a function": put("state/class", "minmaxcon.files:remove_stale"),
    "a module of the system": put("state/class", "os:system"),
    "a process": put("state/class", "subprocess:Popen"),
    "an executor": put("state/class", "builtins:exec"),
    "no class": put("state/class", 5),
    "a class with constructor": lambda manifest: manifest.update(
        state={"made": {"folder": "x"}, "class": "minmaxcon.solvers.checkpoint:Checkpoints"}
    ),
    "other arguments": lambda manifest: manifest.update(
        state={"made": {"blocks": []}, "class": "minmaxcon.geometry.perspective:PerspectiveGenerator"}
    ),
    "a field too many": put("state/fields/evil", 1),
    "no fields": put("state/fields", {}),
    "an array that is not there": put("state/fields/level", {"array": 10**6}),
    "a negative array": put("state/fields/level", {"array": "x"}),
    "unknown kind": put("state/fields/level", {"lambda": 1}),
    "empty kind": put("state/fields/level", {}),
    "a part that is not there": put("state/fields/problem", {"part": "nothing"}),
    "deep": deep,
    "seconds": put("seconds", "long"),
    "infinite seconds": put("seconds", "inf"),
    "seconds that are none": put("seconds", "nan"),
    "negative seconds": put("seconds", -1.0),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_checkpoint_is_refused_in_one_line(name: str, tmp_path: Path, content: bytes, figure: Figure) -> None:
    keeper = reader(tmp_path)
    (tmp_path / CHECKPOINT_FILE).write_bytes(forged(content, FORGERIES[name]))
    with pytest.raises(mm.MinMaxConError) as refusal:
        keeper.read()
    assert isinstance(refusal.value, mm.CorruptCheckpoint), refusal.value
    assert str(refusal.value).startswith(str(tmp_path))
    assert "\n" not in str(refusal.value)
    figure.total(1, "forged checkpoints, each refused")


def test_an_archive_that_claims_much_is_refused(tmp_path: Path, content: bytes) -> None:
    """Arrays that are packed, or whose headings tell of more than there is."""
    keeper = reader(tmp_path)
    body = content.partition(b"\n")[2]
    with np.load(io.BytesIO(body)) as archive:
        held = dict(archive)
    packed, huge, heading = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez_compressed(packed, **held)
    manifest = held.pop("manifest")
    np.savez(huge, manifest=manifest)
    np.lib.format.write_array_header_1_0(heading, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    with zipfile.ZipFile(huge, "a") as members:
        members.writestr("array0.npy", heading.getvalue())
    for changed in (packed.getvalue(), huge.getvalue(), body[:-50], b"PK" + body[2:100], b""):
        digest = module.blake2b(changed, digest_size=32).hexdigest().encode()
        (tmp_path / CHECKPOINT_FILE).write_bytes(b"minmaxcon-checkpoint 1 " + digest + b"\n" + changed)
        with pytest.raises(mm.CorruptCheckpoint):
            keeper.read()


@pytest.mark.parametrize(
    "old, new",
    [
        (b"{'descr': '|u1'", b"{'descr': ('|u1'"[:15]),  # what Python's tokenizer raises
        (b"PK\x01\x02-\x03-", b"PK\x01\x02-\x03Z"),  # a version of zip that is to come
        (b"\x00\x00\x00\x00\x00\x00!\x00", b"\x01\x00\x00\x00\x00\x00!\x00"),  # encrypted
        (b"manifest.npy", b"m\x1b[31mst.npy"),
    ],
    ids=["heading", "version", "encrypted", "name"],
)
def test_an_archive_that_no_numpy_wrote_is_refused(tmp_path: Path, content: bytes, old: bytes, new: bytes) -> None:
    body = content.partition(b"\n")[2]
    assert old in body
    (tmp_path / CHECKPOINT_FILE).write_bytes(sealed(body.replace(old, new)))
    with pytest.raises(mm.CorruptCheckpoint, match="is no checkpoint") as refusal:
        reader(tmp_path).read()
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("other", [".", "link"])
def test_one_folder_in_two_spellings_begins_where_there_is_nothing(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to(tmp_path)
    Path("round").symlink_to("round")
    with pytest.raises(mm.InvalidInput, match="round"):
        mm.solve(mm.load_problem("toy"), SOLVER, checkpoint="round", resume="round")
    folders = {"checkpoint": "kept", "resume": tmp_path / other / "kept"}
    first = mm.solve(mm.load_problem("toy"), SOLVER, budget=200, **folders)
    assert same(mm.solve(mm.load_problem("toy"), SOLVER, budget=200, **folders), first)


def test_a_reader_that_fails_without_a_word_is_named(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: bytes) -> Any:
        raise EOFError

    (tmp_path / CHECKPOINT_FILE).write_bytes(content)
    monkeypatch.setattr(module, "_READERS", dict.fromkeys(module._READERS, fail))
    with pytest.raises(mm.CorruptCheckpoint, match=r"is no checkpoint \(EOFError\)\."):
        mm.solve(cases.problem("fair_auc_inter"), SOLVER, resume=tmp_path)


def test_all_has_been_handed_over_when_the_disk_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = list[int]()
    monkeypatch.setattr(os, "fsync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))
    files.write_synced(tmp_path / "file", 1234 * b"x")
    assert sizes == [1234]


def test_a_newer_format_and_a_link_are_refused(tmp_path: Path, content: bytes) -> None:
    keeper = reader(tmp_path)
    path = tmp_path / CHECKPOINT_FILE
    path.write_bytes(content.replace(b"checkpoint 1 ", b"checkpoint 9 ", 1))
    with pytest.raises(mm.CorruptCheckpoint, match="has format 9, and this version of minmaxcon reads format 1"):
        keeper.read()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(mm.CorruptCheckpoint, match="is no file that a solve wrote"):
        keeper.read()


def test_a_file_of_an_older_format_is_read(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next format is written, and those of before are read; a reader that is missing is named."""
    keeper = reader(tmp_path)
    path = tmp_path / CHECKPOINT_FILE
    path.write_bytes(content)
    monkeypatch.setattr(module, "_FORMAT", 2)
    monkeypatch.setitem(module._READERS, b"2", module._READERS[b"1"])
    saved = keeper.read()
    keeper.write(saved.state, saved.seconds)
    first, _, body = path.read_bytes().partition(b"\n")
    assert (first[:23], body) == (b"minmaxcon-checkpoint 2 ", content.partition(b"\n")[2])
    assert keeper.read().seconds == saved.seconds
    monkeypatch.delitem(module._READERS, b"1")
    path.write_bytes(content)
    with pytest.raises(mm.CorruptCheckpoint, match="has format 1, and this version of minmaxcon reads format 2"):
        keeper.read()


# ------------------------------------------------------------------------------------------------ disks and signals

QUICK = mm.SFLS(oracle=mm.SMD(steps=100, batch_size=10, block=50), levels=2, tolerance=1e-6)


@cache
def undisturbed() -> mm.Solution:
    """What a solve gives that nothing ends."""
    return mm.solve(cases.problem("fair_auc_inter"), QUICK)


OPERATIONS = ("write_synced", "fsync", "replace", "sync_folder")


def failing(monkeypatch: pytest.MonkeyPatch, operation: str, fault: Callable[[], None], after: int) -> None:
    """Let an operation on files do ``fault`` instead, at its k-th call from now on."""
    calls = [0]

    def wrapped(old: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            calls[0] += 1
            if calls[0] > after:
                fault()
            return old(*arguments)

        return call

    if operation in ("write_synced", "sync_folder"):
        monkeypatch.setattr(files, operation, wrapped(getattr(files, operation)))
    elif operation == "fsync":
        monkeypatch.setattr(os, "fsync", wrapped(os.fsync))
    else:
        monkeypatch.setattr(Path, "replace", wrapped(Path.replace))


WRITES = 6
"""How many checkpoints a solve by QUICK writes, one after each piece of work."""

FAULTS = [
    (operation, code, after)
    for operation in OPERATIONS
    for code in (errno.ENOSPC, errno.EIO)
    for after in range(2 * WRITES if operation == "fsync" else WRITES)
]
"""A full disk stays full, a broken one fails once; fsync is called for the file and for its folder."""


@pytest.mark.parametrize(
    "operation, code, after", [pytest.param(*fault, marks=() if fault[2] == 1 else pytest.mark.rel) for fault in FAULTS]
)
def test_a_disk_that_fails_leaves_the_checkpoint_before(
    operation: str, code: int, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Figure
) -> None:
    """The first refusal ends the solve before any work; a later one is a warning, and the solve goes on."""
    problem, expected, calls = cases.problem("fair_auc_inter"), undisturbed(), list[int]()
    place, renamed = (after // 2, after % 2 == 1) if operation == "fsync" else (after, operation == "sync_folder")

    def fault() -> None:
        calls.append(code)
        if code == errno.ENOSPC or len(calls) == 1:
            raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        failing(patch, operation, fault, after)
        if place == 0 and not renamed:
            with pytest.raises(mm.InvalidInput, match=f"checkpoint=.*cannot be written .{os.strerror(code)}"):
                mm.solve(problem, QUICK, checkpoint=tmp_path, every=0)
        else:
            assert same(mm.solve(problem, QUICK, checkpoint=tmp_path, every=0), expected)
    assert calls
    first = place + renamed  # the first that is not written: what fails after the rename changes nothing
    lost = 0 if operation == "sync_folder" else WRITES - first if code == errno.ENOSPC else 1 - renamed
    assert [warning.category for warning in told] == [mm.CheckpointWarning] * (lost if first else 0)
    assert all("the one before is kept, and the solve goes on" in str(warning.message) for warning in told)
    assert [path.name for path in tmp_path.iterdir()] == ([CHECKPOINT_FILE] if first else [])
    if first:
        seen: list[int] = []
        found = mm.solve(problem, QUICK, resume=tmp_path, callbacks=[lambda now: seen.append(now.outcome.steps)])
        assert same(found, expected)
        assert (seen[0] == expected.steps) is (lost == 0 or (code == errno.EIO and place < WRITES - 1))
    figure.total(len(calls), "writes refused")
    figure.total(1, "solves on such disks, each with the checkpoint before")


def killed(work: Callable[[], Any], seconds: float | None) -> bool:
    """Run work in a process and kill it after so many seconds; tell whether it had ended before."""
    process = os.fork()
    if process == 0:
        try:
            work()
        finally:
            os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
    return os.WIFEXITED(os.waitpid(process, 0)[1])


def naive(path: Path, content: bytes) -> None:
    """Write as one should not: into the file itself, piece by piece."""
    with path.open("wb", buffering=0) as file:
        for begin in range(0, len(content), 100):
            file.write(content[begin : begin + 100])


def kills(folder: Path, count: int) -> tuple[int, int]:
    """Kill solves at random instants, each going on where the one before was killed, and end what each has left.

    Returns how many ended with the bits of a solve that nothing disturbs, and how many left a broken checkpoint.
    """
    rng, problem = np.random.default_rng(0), cases.problem("fair_auc_inter")
    solver = mm.SFLS(oracle=mm.SMD(steps=100, batch_size=20, block=5), levels=2, tolerance=1e-6)
    expected, folders = mm.solve(problem, solver), (folder / str(number) for number in itertools.count())
    where, alike, broken = next(folders), 0, 0

    def work() -> None:
        mm.solve(problem, solver, checkpoint=where, resume=where, every=0)

    for _ in range(count):
        while killed(work, float(rng.uniform(0.0, 0.1))):
            where = next(folders)  # it had ended before
        left = next(folders)
        if where.exists():
            shutil.copytree(where, left)
        try:
            alike += same(mm.solve(problem, solver, checkpoint=left, resume=left), expected)
        except mm.CorruptCheckpoint:
            broken, where = broken + 1, next(folders)
        assert [path.name for path in left.iterdir()] == [CHECKPOINT_FILE]
    return alike, broken


def test_a_killed_solve_goes_on(tmp_path: Path) -> None:
    assert kills(tmp_path, 2) == (2, 0)


KILLS = 200
"""Random instants at which a promise kills a solve."""


@pytest.mark.rel
@pytest.mark.timeout(600)
def test_kill9(tmp_path: Path, figure: Figure) -> None:
    alike, broken = kills(tmp_path, KILLS)
    figure.count(alike, KILLS, "killed solves gone on with the same bits")
    assert (alike, broken) == (KILLS, 0)


@pytest.mark.rel
@pytest.mark.timeout(600)
def test_kill9_notices_a_naive_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Figure) -> None:
    """The canary of the test above: a writer that is not atomic leaves broken checkpoints at some of the instants."""
    monkeypatch.setattr(module, "replace_file", naive)
    broken, count = 0, 0
    while not broken and count < KILLS:  # on a busy machine few instants fall into a write
        broken, count = kills(tmp_path / str(count), KILLS // 4)[1], count + KILLS // 4
    figure.count(broken, count, "left broken by a naive writer")
    assert broken


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("naively", [False, True])
def test_a_process_may_end_at_every_operation_on_files(
    operation: str, naively: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The instants between the operations, one by one; a writer that is not atomic fails at one of them."""
    problem = cases.problem("fair_auc_inter")
    expected = undisturbed()
    mm.solve(problem, QUICK, checkpoint=tmp_path, callbacks=[stopping(2)])
    with monkeypatch.context() as patch:
        if naively:
            patch.setattr(files, "replace_file", naive)
            patch.setattr(module, "replace_file", lambda path, content: (naive(path, content[:5000]), os._exit(1)))
        failing(patch, operation, lambda: os._exit(1), 2)
        killed(lambda: mm.solve(problem, QUICK, resume=tmp_path, every=0), None)
    if naively:
        with pytest.raises(mm.CorruptCheckpoint):
            mm.solve(problem, QUICK, resume=tmp_path)
    else:
        assert same(mm.solve(problem, QUICK, resume=tmp_path), expected)
        assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT_FILE]


@pytest.mark.parametrize("name, shown", [("SIGTERM", "SIGTERM"), ("SIGHUP", "SIGHUP"), ("SIGINT", "Ctrl-C")])
def test_a_signal_ends_a_solve_in_order(name: str, shown: str, tmp_path: Path) -> None:
    """The best feasible point is returned, the checkpoint is that of the last state, and handlers are as before."""
    problem, which = cases.problem("fair_auc_inter"), getattr(signal, name)
    before, count = signal.getsignal(which), [0]

    def send(_: mm.Progress) -> None:
        count[0] += 1
        if count[0] == 3:
            signal.raise_signal(which)
            if which != signal.SIGINT:
                signal.raise_signal(which)  # an impatient sender changes nothing

    ended = mm.solve(problem, QUICK, checkpoint=tmp_path, every=1e6, callbacks=[send])
    assert ended.status is mm.Status.INTERRUPTED
    assert ended.reason.startswith(f"Stopped by {shown}")
    assert ended.feasible
    assert signal.getsignal(which) is before
    assert count[0] == 3
    assert same(mm.solve(problem, QUICK, resume=tmp_path), undisturbed())


def test_what_is_ignored_stays_ignored() -> None:
    """A solve under nohup outlives its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        found = mm.solve(
            cases.problem("fair_auc_inter"), QUICK, callbacks=[lambda _: signal.raise_signal(signal.SIGHUP)]
        )
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert found.status is not mm.Status.INTERRUPTED


@pytest.mark.parametrize("failure", [PermissionError, OverflowError])
def test_what_a_process_that_may_live_has_left_is_kept(
    failure: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of another user, and a number that is none, count as alive: their files are not removed."""

    def kill(_: int, __: int) -> None:
        raise failure

    monkeypatch.setattr(os, "kill", kill)
    left = tmp_path / f".{CHECKPOINT_FILE}.new-123"
    left.write_bytes(b"half")
    files.remove_stale(tmp_path / CHECKPOINT_FILE)
    assert files.alive(123) is True
    assert left.exists()

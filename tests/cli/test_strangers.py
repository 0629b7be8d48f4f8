"""Files and plug-ins of strangers: each fault is one line, and spares the rest."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon import registry
from minmaxcon.cli import main
from minmaxcon.results import model_bytes, read_model, read_result
from minmaxcon_problems.fair_auc.plugin import plugin as fair_auc
from tests import cases
from tests.problem_library import HalfSquare, Linear

from .test_process import COMMAND

Change = Callable[[dict[str, Any], dict[str, Any]], Any]


@pytest.fixture(scope="module")
def models(table: Path) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Give the arrays and the description of a linear model and of a network, as they are saved."""
    found = {}
    for kind in ("linear", "mlp"):
        problem = mm.load_problem("fair_auc", data=str(table), label="label", sensitive="group", kappa=0.3, model=kind)
        x = np.linspace(-1.0, 1.0, problem.primal.dimension)
        arrays, description = fair_auc.export(problem, x)
        found[kind] = dict(arrays), json.loads(json.dumps(description))
    return found


def array(name: str, value: Any) -> Change:
    return lambda arrays, _: arrays.update({name: np.asarray(value)})


def fewer(name: str) -> Change:
    return lambda arrays, _: arrays.update({name: arrays[name][:-1]})


def as_type(name: str, dtype: Any) -> Change:
    return lambda arrays, _: arrays.update({name: arrays[name].astype(dtype)})


def spoiled(name: str, value: float) -> Change:
    def change(arrays: dict[str, Any], _: dict[str, Any]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name].flat[0] = value

    return change


def described(name: str, value: Any) -> Change:
    return lambda _, description: description.update({name: value})


def column(name: str, value: Any) -> Change:
    return lambda _, description: description["encoding"]["columns"][0].update({name: value})


FORGED: list[tuple[str, Change, str]] = [
    ("linear", fewer("weight"), "weight=(3,): must have shape (4,)"),
    ("linear", array("weight", np.zeros((4, 1))), "weight=(4, 1): must have shape (4,)"),
    ("linear", array("weight", 1.0), "weight=(1,): must have shape (4,)"),
    ("linear", array("weight", np.zeros(0)), "weight=(0,): must have shape (4,)"),
    ("linear", lambda arrays, _: arrays.pop("weight"), "weight=None: the model has no array of this name"),
    ("linear", array("other", np.zeros(4)), "other=(4,): such a model has no array of this name"),
    ("linear", spoiled("weight", np.nan), "weight='not finite'"),
    ("linear", spoiled("weight", np.inf), "weight='not finite'"),
    ("linear", as_type("weight", bool), "weight='bool': must hold numbers of floating point"),
    ("linear", as_type("weight", np.uint8), "weight='uint8'"),
    ("linear", as_type("weight", np.int64), "weight='int64'"),
    ("linear", described("model", "forest"), "'forest'"),
    ("linear", described("model", None), "model=None"),
    ("linear", described("model", ["linear"]), "model=['linear']"),
    ("linear", described("model", "x" * 100_000), "does not know"),
    ("linear", described("problem", 7), "does not say which problem"),
    ("linear", described("problem", "../evil"), "unknown name"),
    ("linear", described("encoding", "text"), "encoding='text'"),
    ("linear", described("encoding", []), "encoding=[]"),
    ("linear", described("encoding", {"format": "table"}), "columns"),
    ("linear", described("encoding", {"format": "table", "columns": []}), "columns"),
    ("linear", described("encoding", {"format": "libsvm", "n_features": 2**40}), "n_features"),
    ("linear", column("fill", "text"), "fill"),
    ("linear", column("name", None), "name"),
    ("linear", column("categories", [1, 2]), "categories"),
    ("mlp", lambda arrays, _: arrays.clear(), "hidden_weight=None"),
    ("mlp", fewer("hidden_bias"), "hidden_bias=(9,)"),
    ("mlp", fewer("output_weight"), "hidden_weight=(10, 4)"),
    ("mlp", array("hidden_weight", np.zeros(4)), "hidden_weight=(4,)"),
    ("mlp", spoiled("output_weight", np.nan), "output_weight='not finite'"),
]


@pytest.mark.parametrize("kind, change, said", FORGED, ids=[f"{i}-{each[2][:30]}" for i, each in enumerate(FORGED)])
def test_a_forged_model_is_refused_by_its_field(
    kind: str, change: Change, said: str, models: Any, table: Path, tmp_path: Path, call: Callable[..., Any]
) -> None:
    arrays, description = models[kind]
    arrays, description = dict(arrays), json.loads(json.dumps(description))
    change(arrays, description)
    if not arrays:
        arrays["nothing"] = np.zeros(1)
    (tmp_path / "model.safetensors").write_bytes(model_bytes(arrays, description))
    done = call("predict", tmp_path, "--data", table)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert len(done.err) < 1000


def test_models_that_are_right_still_score(models: Any, table: Path, tmp_path: Path, call: Callable[..., Any]) -> None:
    for kind, (arrays, description) in models.items():
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "model.safetensors").write_bytes(model_bytes(arrays, description))
        done = call("predict", tmp_path / kind, "--data", table)
        assert done.status == 0, done.err


def test_newer_formats_deep_descriptions_and_links_are_refused(models: Any, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "model.safetensors"
    note = {"version": 9, "description": {}, "blake2b": ""}
    save_file({"weight": np.zeros(2)}, path, metadata={"minmaxcon": json.dumps(note)})
    with pytest.raises(mm.DataError, match="is of format 9"):
        read_model(path)
    deep = "[" * 100_000 + "]" * 100_000
    for text in (deep, f'{{"version": 1, "description": {{"a": {deep}}}, "blake2b": ""}}', "[]", "5", "{}", "text"):
        save_file({"weight": np.zeros(2)}, path, metadata={"minmaxcon": text})
        with pytest.raises(mm.DataError, match="damaged"):
            read_model(path)
    arrays, description = models["linear"]
    (tmp_path / "elsewhere").write_bytes(model_bytes(arrays, description))
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(mm.DataError, match="is a link"):
        read_model(path)


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda r: r.update(status="won"), "status"),
        (lambda r: r.update(status=None), "status"),
        (lambda r: r.update(status="../../x"), "status"),
        (lambda r: r.update(objective=np.inf), "objective"),
        (lambda r: r.update(constraints=[-np.inf]), "constraints.0"),
        (lambda r: r["certificate"].update(lower=-np.inf), "certificate.lower"),
        (lambda r: r.update(seconds=np.nan), "seconds"),
        (lambda r: r.update(train={"auc": np.inf}), "train"),
        (lambda r: r["evidence"].update(weights=[np.inf]), "evidence.weights.0"),
        (lambda r: r.update(objective="1"), "objective"),
        (lambda r: r.update(constraints="text"), "constraints"),
        (lambda r: r.update(feasible=1), "feasible"),
        (lambda r: r.update(steps=1.5), "steps"),
        (lambda r: r.update(extra=1), "extra"),
        (lambda r: r.pop("certificate"), "certificate"),
        (lambda r: r["certificate"].update(lower=[1]), "certificate.lower"),
        (lambda r: r.update(settings=[]), "settings"),
        (lambda r: r.update(runs=[]), "[a-z]+"),
        (lambda r: r["evidence"].update(x={"a": 1}), "evidence.x"),
    ],
)
def test_a_forged_result_is_refused_by_its_field(change: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    record = json.loads(RESULT)
    change(record)
    path.write_text(json.dumps(record))
    with pytest.raises(mm.DataError, match=rf"is no result of minmaxcon: {said}"):
        read_result(tmp_path)


RESULT = json.dumps(cases.RESULT)


@pytest.mark.parametrize("text", ["", "[]", "5", "NaN", "{", "[" * 200_000, '{"a":' * 100_000, "\x00", '"runs":'])
def test_what_is_no_result_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(mm.DataError, match="is no result of minmaxcon") as refusal:
        read_result(tmp_path)
    assert len(str(refusal.value)) < 1000


def test_a_result_with_a_number_that_is_none_or_behind_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(RESULT.replace('"objective": 1.0', '"objective": NaN'))
    with pytest.raises(mm.DataError, match="objective"):
        read_result(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(mm.DataError, match="is a link"):
        read_result(tmp_path)


# ------------------------------------------------------------------------------------------------ plug-ins


class Plugin(mm.ProblemPlugin):
    """A problem of a stranger, which fails where it is told to."""

    name, summary = "strange", "A stranger's."

    def __init__(self, **faults: Any) -> None:
        self.faults = faults

    def _fault(self, name: str, value: Any, *given: Any) -> Any:
        fault = self.faults.get(name, value)
        if isinstance(fault, BaseException):
            raise fault
        return fault(*given) if callable(fault) else fault

    def load(self, bound: float = 0.5) -> mm.MinMaxProblem:
        """Return a small problem."""
        made = mm.MinMaxProblem(
            HalfSquare(), [Linear(bound)], mm.Ball(3, 6.0), cases.finite("points", "costs"), start=-np.ones(3)
        )
        found: mm.MinMaxProblem = self._fault("load", made)
        return found

    def evaluate(self, problem: mm.MinMaxProblem, x: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._fault("evaluate", {}, x)
        return found

    def notes(self, problem: mm.MinMaxProblem, measured: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._fault("notes", {})
        return found


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Give a function that pretends that the stranger's plug-in is installed."""

    def put(**faults: Any) -> None:
        class Point:
            value = "stranger:plugin"

            def load(self) -> Any:
                return Plugin(**faults)

        monkeypatch.setattr(registry, "_entry_points", lambda: {"strange": Point()})
        registry._imported.cache_clear()

    yield put
    registry._imported.cache_clear()


class Cancelled(BaseException):
    """No Exception, as what cancels tasks of asyncio is none."""


FAULTS = [
    RuntimeError("two\nlines"),
    SystemExit(3),
    Cancelled("at once"),
    KeyError("x"),
    OSError(5, "disk"),
    ValueError("x" * 100_000),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_load_that_raises_is_one_line(fault: Any, strange: Callable[..., None], call: Callable[..., Any]) -> None:
    strange(load=fault)
    done = call("solve", "strange")
    assert (done.status, done.out) == (2, "")
    assert "could not be loaded" in done.err
    assert len(done.err.splitlines()) == 1
    assert len(done.err) < 1000


def test_ctrl_c_within_a_load_is_no_failure_of_it(strange: Callable[..., None], call: Callable[..., Any]) -> None:
    strange(load=KeyboardInterrupt())
    done = call("solve", "strange")
    assert (done.status, done.err) == (1, "minmaxcon: interrupted before there was a result.\n")


@pytest.mark.parametrize("found", [None, 3, "problem", [1], {"x": 1}, np.zeros(3)], ids=lambda one: type(one).__name__)
def test_a_load_that_returns_no_problem_is_one_line(
    found: Any, strange: Callable[..., None], call: Callable[..., Any]
) -> None:
    strange(load=found)
    for command in ("solve", "compare", "check"):
        done = call(command, "strange")
        assert (done.status, done.out) == (2, "")
        said = f"load() of problem 'strange' returned a {type(found).__name__}; it must return a MinMaxProblem."
        assert done.err == f"minmaxcon: error: {said}\n"


class Ending(HalfSquare):
    """Ends the program when it is evaluated."""

    def __init__(self, how: BaseException) -> None:
        super().__init__()
        self.how = how

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        raise self.how


@pytest.mark.parametrize("how, named", [(SystemExit(0), "sys.exit(0)"), (Cancelled("all"), "Cancelled: all")])
@pytest.mark.parametrize("words", [("solve",), ("solve", "--json"), ("compare", "--max-samples", 100), ("check",)])
def test_a_function_that_ends_the_program_is_no_success(
    words: tuple[Any, ...], how: BaseException, named: str, strange: Callable[..., None], call: Callable[..., Any]
) -> None:
    strange(load=mm.MinMaxProblem(Ending(how), [Linear(0.5)], mm.Ball(3, 6.0), cases.finite("points", "costs")))
    done = call(words[0], "strange", "--quiet", *words[1:])
    assert done.status != 0
    if words[0] != "check":  # which tells it of each check
        assert (done.status, done.out) == (2, "")
        said = f"code that was loaded ended the program before there was a result ({named}); mend it."
        assert done.err == f"minmaxcon: error: {said}\n"


@pytest.mark.usefixtures("limit_of_the_solve", "outlined")
def test_an_evaluation_that_writes_into_the_point_spoils_no_result(
    strange: Callable[..., None], call: Callable[..., Any], tmp_path: Path
) -> None:
    strange(evaluate=lambda x: x.fill(np.nan) or {"objective": 0.5, "values": [0.25]})
    done = call("solve", "strange", "--quiet", "--time-limit", 0.05, "--out", tmp_path / "r")
    assert done.status in (0, 1), done.err
    assert np.isfinite(read_result(tmp_path / "r").evidence.x).all()


@pytest.mark.parametrize("part", ["evaluate", "notes"])
@pytest.mark.parametrize(
    "fault",
    [*FAULTS[:3], None, [1], {"objective": 1j, "values": [0.0], "Please note": 5}],
    ids=lambda fault: type(fault).__name__,
)
@pytest.mark.usefixtures("limit_of_the_solve")
def test_what_was_solved_is_not_lost_by_what_measures_it(
    part: str, fault: Any, strange: Callable[..., None], call: Callable[..., Any]
) -> None:
    strange(**{part: fault})
    done = call("solve", "strange", "--json", "--quiet", "--time-limit", 0.05)
    assert done.status in (0, 1), done.err
    found = json.loads(done.out)
    assert found["feasible"] is True
    assert found["recomputed"] is False
    assert f"{part} of 'strange' failed" in " ".join(found["notes"])


FOREIGN = {
    "raises": "raise RuntimeError('first\\nsecond')",
    "exits": "raise SystemExit(0)",
    "cancels": "import asyncio\nraise asyncio.CancelledError",
    "ends": "import os; os._exit(0)",
    "crashes": "import os; os.abort()",
    "hangs": "import time; time.sleep(1000)",
    "prints": "print('noise')\nimport minmaxcon as mm\nclass P(mm.ProblemPlugin):\n    summary = 'Noisy.'\n"
    "    def load(self): pass\nplugin = P()",
}


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Give a function that lists problems, some of them foreign, and returns their summaries."""

    def run(*names: str) -> dict[str, str]:
        points = {"toy": EntryPoint("toy", "minmaxcon_problems.toy:plugin", registry.ENTRY_POINT_GROUP)}
        for name in names:
            (tmp_path / f"foreign_{name}.py").write_text(FOREIGN[name])
            points[name] = EntryPoint(name, f"foreign_{name}:plugin", registry.ENTRY_POINT_GROUP)
        monkeypatch.setattr(registry, "_entry_points", lambda: points)
        registry._imported.cache_clear()
        done = call("problems", "--json")
        assert done.status == 0
        found = {one["name"]: one["summary"] for one in json.loads(done.out)}
        assert "failed" not in found["toy"]
        assert all("\n" not in text for text in found.values())
        return found

    monkeypatch.syspath_prepend(tmp_path)
    yield run
    registry._imported.cache_clear()


def test_an_import_that_fails_or_ends_the_interpreter_is_a_line_and_spares_the_others(
    listed: Callable[..., dict[str, str]],
) -> None:
    found = listed("raises", "exits", "cancels", "ends", "crashes", "prints")
    assert found["prints"] == "Noisy."
    assert "ends the interpreter with exit status 0" in found["ends"]
    assert "ends the interpreter with exit status -6" in found["crashes"]
    assert "second" in found["raises"]
    assert "CancelledError" in found["cancels"]
    assert "ends the interpreter" in found["exits"]


def test_an_import_that_hangs_is_a_line_and_spares_the_others(
    listed: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "IMPORT_SECONDS", 1.0)
    assert "has not been imported after 1 s" in listed("hangs")["hangs"]


# ------------------------------------------------------------------------------------------------ values and streams


class Odd(HalfSquare):
    """Values or gradients of a kind that no function of real variables has."""

    def __init__(self, kind: Any, part: str) -> None:
        super().__init__()
        self.kind, self.part = kind, part

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        if self.part == "F":
            return mm.Evaluation(found.F.astype(self.kind), found.G, found.pullback)
        return mm.Evaluation(found.F, found.G, lambda y, a: found.pullback(y, a).astype(self.kind))


class Fused(Odd):
    """The same, evaluated together with others by a family of its own, which looks at no value."""

    @classmethod
    def fuse(cls, constraints: Any) -> mm.ConstraintFamily:
        return Unchecked(constraints)


class Unchecked(mm.ConstraintFamily):
    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        (one,) = self.constraints
        found = one.evaluate(x, batch)
        return mm.Evaluation(found.F[..., None], found.G, lambda y, a: found.pullback(y[..., 0], a))


SOLVERS = [
    mm.SFLS(),
    mm.SFLS(oracle=mm.ExtraGradient()),
    mm.SFLS(oracle=mm.MirrorProx()),
    mm.IQRC(),
    mm.ConEx(steps=50),
    mm.PrimalDual(steps=50),
    mm.SwitchingSubgradient(steps=50),
    None,
]


def odd_problem(made: type[Odd], kind: Any, part: str, data: mm.Source) -> mm.MinMaxProblem:
    return mm.MinMaxProblem(made(kind, part), [Linear(0.5)], mm.Ball(3, 6.0), data, start=-np.ones(3))


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("part, said", [("F", "evaluate gives F"), ("gradient", "pullback gives a gradient")])
@pytest.mark.parametrize("made, kind", [(Odd, complex), (Odd, object), (Odd, str), (Fused, complex), (Fused, object)])
def test_values_that_are_no_real_numbers_are_named(made: Any, kind: Any, part: str, said: str, solver: Any) -> None:
    problem = odd_problem(made, kind, part, cases.finite("points", "costs"))
    with pytest.raises(mm.InvalidInput, match=rf"{said} of type .*real numbers"):
        mm.solve(problem, solver, budget=10)


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize(
    "solver",
    [SOLVERS[0], SOLVERS[4], *(pytest.param(SOLVERS[i], marks=pytest.mark.rel) for i in (1, 3, 5, 6, 7))],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("made", [Odd, Fused])
@pytest.mark.parametrize("part", ["F", "gradient"])
def test_values_that_are_no_real_numbers_are_named_on_a_stream(made: Any, part: str, solver: Any) -> None:
    point = {"points": np.ones(3), "costs": np.ones(3)}
    problem = odd_problem(made, complex, part, mm.Stream(lambda: itertools.repeat(point), shuffle=1))
    with pytest.raises(mm.InvalidInput, match=rf"{part} of type complex.*real numbers"):
        mm.solve(problem, solver, budget=20_000)


@pytest.mark.parametrize("made", [Odd, Fused])
def test_whole_numbers_are_real(made: Any) -> None:
    data = cases.finite("points", "costs")
    found = mm.solve(odd_problem(made, int, "gradient", data), mm.SFLS(oracle=mm.SMD(steps=20)), budget=100)
    assert np.isfinite(found.x).all()


@pytest.mark.parametrize(
    "words, status, closed",
    [
        ("problems --names", 0, ">&-"),
        *(pytest.param("problems --names", 0, closed, marks=pytest.mark.rel) for closed in ("2>&-", ">&- 2>&-")),
        ("problems --names", 0, "<&- >&- 2>&-"),
        ("solve nothing", 2, ">&- 2>&-"),
        pytest.param("--help", 0, ">&- 2>&-", marks=pytest.mark.rel),
    ],
)
def test_closed_streams_end_in_the_exit_status(words: str, status: int, closed: str, tmp_path: Path) -> None:
    line = " ".join(f"'{word}'" for word in COMMAND) + f" {words} {closed}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == status
    assert "Traceback" not in done.stdout + done.stderr


def test_a_reader_of_the_result_that_has_gone_ends_in_exit_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["problems", "--names"]) == 1
        out.flush()  # what is left in the buffer does not fail again


def test_a_reader_of_errors_that_has_gone_ends_in_the_exit_status() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, "solve", "nothing"], stdout=subprocess.PIPE, stderr=write, check=False, env={**os.environ}
    )
    os.close(write)
    assert done.returncode in (1, 2)
    assert sys.executable

"""Options of a problem: read by the types of its ``load``, explained by its docstring, and named in errors."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon import registry
from minmaxcon.cli.options import bound_options, explain, words_of
from minmaxcon.cli.solve import load
from minmaxcon.results import model_bytes
from tests.cases import quadratic

seen: dict[str, Any] = {}


class Typed(mm.ProblemPlugin):
    """A plug-in with an option of every kind."""

    name = "typed"
    summary = "Every kind of option."

    def load(
        self,
        bound: float | Sequence[float] = 0.5,
        *,
        names: Sequence[str] = ("a", "b"),
        ways: list[int] | int | None = None,
        count: int = 3,
        rate: float | None = None,
        folder: Path | None = None,
        strict: bool = False,
        careful: bool | None = None,
        kind: Literal["x", "y"] = "x",
        text: Any = "2024",
        number: Any = 1.5,
        unknown: Any = None,
        powers: Any = (1.5, 2),
        colours: Any = (),
        model: mm.Model | None = None,
        steps: int = 7,
    ) -> mm.MinMaxProblem:
        r"""Load it.

        Parameters
        ----------
        bound : float or sequence of float
            What :math:`\kappa` bounds, see :func:`~minmaxcon.solve` and ``f``.
        names, ways
            Shared by two.
        """
        seen.clear()
        seen.update(locals())
        return quadratic(bound)


class Free(Typed):
    """A plug-in that takes options of any name."""

    name = "free"

    def load(self, **options: Any) -> mm.MinMaxProblem:  # type: ignore[override]  # of any name
        """Load it."""
        seen.clear()
        seen.update(options)
        return quadratic(0.5)


class Counted(SimpleNamespace):
    """What was measured, as a plug-in returns it."""

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def __str__(self) -> str:
        return f"above {self.above:g}: {self.count}\n  {'of all rows that were scored, ' * 9}as many"


class Scores(Typed):
    """A plug-in whose models score rows, with options to score and to measure."""

    name = "scores"

    def export(self, problem: Any, x: Any) -> Any:
        return {"x": x}, {"problem": self.name}

    def predict(self, arrays: Any, description: Any, data: Any, *, factor: float = 1.0) -> Any:
        return [factor * float(line) for line in Path(data).read_text().split()]

    def measure_scores(self, description: Any, scores: Any, data: Any, /, *, above: float = 0.0) -> Any:
        """Measure them.

        Parameters
        ----------
        above : float
            What counts.
        """
        return Counted(above=above, count=sum(score > above for score in scores) // int(above < 1e6))


POINTS = {made.name: SimpleNamespace(value="", load=lambda made=made: made) for made in (Typed, Free, Scores)}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_entry_points", lambda: POINTS)
    registry._imported.cache_clear()
    yield
    registry._imported.cache_clear()


@pytest.fixture
def given(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Give a function that returns what ``load`` is called with, or the refusal in one line."""
    monkeypatch.setattr("minmaxcon.testing.check_problem", lambda *_, **__: SimpleNamespace(passed=True))

    def run(*words: object) -> Any:
        done = call("check", "typed", *words)
        assert (done.status, done.err.count("\n")) in ((0, 0), (2, 1))
        return done.err or dict(seen)

    return run


@pytest.mark.parametrize(
    "word, option, value",
    [
        ("--bound=0.1", "bound", 0.1),
        ("--bound=-0.1,1e-3", "bound", [-0.1, 0.001]),
        ("--names=energy", "names", ["energy"]),
        ("--names=a b, c", "names", ["a b", "c"]),
        ("--ways=1,2", "ways", [1, 2]),
        ("--ways=4", "ways", 4),
        ("--count=4", "count", 4),
        ("--rate=4", "rate", 4.0),
        ("--folder=a/b", "folder", Path("a/b")),
        ("--strict", "strict", True),
        ("--careful", "careful", True),
        ("--no-careful", "careful", False),
        ("--kind=y", "kind", "y"),
        ("--text=0.5", "text", "0.5"),
        ("--number=2", "number", 2.0),
        ("--unknown=2", "unknown", "2"),
        ("--powers=1,2.5", "powers", [1.0, 2.5]),
        ("--colours=red,blue", "colours", ["red", "blue"]),
    ],
)
def test_a_word_is_read_by_the_type(given: Callable[..., Any], word: str, option: str, value: Any) -> None:
    found = given(word)
    assert found[option] == value
    assert type(found[option]) is type(value)


@pytest.mark.parametrize(
    "word, said",
    [
        ("--bound=1,x", "--bound: 'x' is no number; give one, or several separated by commas."),
        ("--ways=1.5", "'1.5' is no whole number"),
        ("--count=1.5", "'1.5' is no whole number"),
        ("--kind=z", "--kind"),
        ("--folder=", "--folder: the path is empty; name a file or folder"),
        ("--model=mlp", "Unknown option: --model"),
        ("--nmaes=a", "Did you mean --names?"),
    ],
)
def test_what_is_no_such_value_is_one_line(given: Callable[..., Any], word: str, said: str) -> None:
    assert said in given(word)
    assert "See 'minmaxcon check typed --help'." in given(word)


def test_options_that_are_shown_run_as_they_are_typed(given: Callable[..., Any]) -> None:
    """A value that begins with a dash among them, which would be taken for an option."""
    options = {
        "bound": [-0.5, 1.0],
        "names": ["-a", "b c"],
        "count": -3,
        "rate": -1e-3,
        "folder": Path("-rows"),
        "careful": False,
        "text": "-sex",
        "unknown": "--strict",
    }
    words = words_of(options)
    found = given(*shlex.split(words))
    assert isinstance(found, dict), (words, found)
    assert {name: found[name] for name in options} == options


def test_a_load_that_takes_options_of_any_name_gets_them_as_they_are_typed(call: Callable[..., Any]) -> None:
    assert call("solve", "free", "--shade=-3", "--no-such", "x", "--quiet", "--time-limit", 5).status == 0
    assert seen == {"shade": "-3", "no_such": "x"}


def test_help_is_the_docstring_of_load(call: Callable[..., Any]) -> None:
    text = " ".join(call("check", "typed", "--help").out.replace("│", " ").split())
    assert "Options of typed" in text
    assert "--bound FLOAT What kappa bounds, see minmaxcon.solve and f. [default: 0.5]" in text
    assert "--names STR Shared by two. [default: a,b]" in text
    assert "--model" not in text
    alone = call("check", "--help").out
    assert "--bound" not in alone
    assert "minmaxcon check NAME --help" in " ".join(alone.split())


def test_an_option_of_the_command_is_the_commands(call: Callable[..., Any]) -> None:
    assert call("solve", "typed", "--steps", "50", "--time-limit", "5", "--quiet").status == 0
    assert seen["steps"] == 7


def test_options_of_a_saved_model_are_those_of_its_plug_in(call: Callable[..., Any], tmp_path: Path) -> None:
    """Arguments by name alone: those of ``predict`` change the scores, one of ``measure_scores`` asks for measures."""
    (tmp_path / "model.safetensors").write_bytes(model_bytes({"x": np.zeros(1)}, {"problem": "scores"}))
    rows = tmp_path / "rows.txt"
    rows.write_text("1\n2\n3\n")
    common = ("predict", tmp_path, "--data", rows)
    assert call(*common).out.split() == ["1.0", "2.0", "3.0"]
    assert call(*common, "--factor", 2).out.split() == ["2.0", "4.0", "6.0"]
    first, *others = call("predict", "--data", rows, "--factor", 2, "--above=3", tmp_path).out.splitlines()
    assert first == "above 3: 2"
    assert len(others) > 1
    assert all(line.startswith("  ") and len(line) <= 110 for line in others)
    told = json.loads(call(*common, "--above", 0, "--json").out)
    assert told.pop("measured") == {"above": 0, "count": 3}
    assert told == {"model": str(tmp_path / "model.safetensors"), "data": str(rows), "rows": 3}
    for words, said in (
        (("--above", "x"), "--above"),
        (("--abov", 1), f"Did you mean --above? See 'minmaxcon predict {tmp_path} --help'."),
        (("--description", 1), "Unknown option: --description"),
        (("--above", 1e7), "problem 'scores' failed to measure the rows: ZeroDivisionError"),
    ):
        done = call(*common, *words)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert said in done.err
    rows.write_text("text")
    assert "problem 'scores' failed to score the rows: ValueError: could not convert" in call(*common).err
    text = " ".join(call("predict", tmp_path, "--help").out.replace("│", " ").split())
    assert "--above FLOAT What counts. [default: 0.0]" in text
    assert "--bound" not in text


def test_runs_are_told_apart_by_the_bound_and_by_no_other_list() -> None:
    assert bound_options(Typed()) == ["bound", "ways"]
    assert load("typed", {"bound": [0.5, 0.6]}).run_option() == "bound"
    assert load("typed", {"bound": 0.5}).run_option() == "bound"


NAMES = ("engine", "max_gap", "kappa", "protected", "strict", "rows", "data_dir")


@pytest.mark.parametrize(
    "error,said",
    [
        (mm.InvalidInput("rows", [0, 5], "must be at least 1."), "--rows=0,5: must be at least 1."),
        (
            mm.InvalidInput("rows", list(range(60)), "are many."),
            f"--rows={','.join(map(str, range(60)))[:77]}...: are many.",
        ),
        (mm.InvalidInput("max_gap", None, "is needed, or kappa."), "--max-gap: is needed, or kappa."),
        (mm.InvalidInput("kappa", 0.1, 'use engine="torch".'), "--kappa=0.1: use --engine torch."),
        (mm.InvalidInput("kappa", 'engine="x"', "is no number."), "--kappa='engine=\"x\"': is no number."),
        (
            mm.InvalidInput("width", 3, "needs max_gap=0.05; see max_gaps."),
            "width=3: needs --max-gap 0.05; see max_gaps.",
        ),
        (mm.InvalidInput("kappa", 1, "say with protected= which."), "--kappa=1: say with --protected which."),
        (
            mm.InvalidInput("kappa", 1, "leave strict=True, protected=None."),
            "--kappa=1: leave --strict, protected=None.",
        ),
        (mm.InvalidInput("kappa", 1, "take strict=False, max_gap."), "--kappa=1: take --no-strict, --max-gap."),
        (mm.InvalidInput("kappa", 1, "use engine='my own'."), "--kappa=1: use --engine 'my own'."),
        (
            mm.DataError("f.csv", "no column 'max_gap', asked for by rows;"),
            "f.csv: no column 'max_gap', asked for by --rows;",
        ),
        (mm.DataError("f.csv", "no row has rows=3 & kappa=1."), "f.csv: no row has rows=3 & kappa=1."),
        (mm.OutOfMemory("a/data_dir/max_gap.csv: is too large."), "a/data_dir/max_gap.csv: is too large."),
        (mm.MissingDependency("jax", "jax", 'engine="jax"'), "jax is needed for --engine jax; install it with: "),
    ],
    ids=str,
)
def test_errors_are_told_as_the_command_line_is_typed(error: mm.MinMaxConError, said: str) -> None:
    assert explain(error, NAMES).startswith(said)

"""Mutation testing: faults planted one by one in the code, and the tests that notice.

``python docs/figures/mutation.py`` tries a fixed random sample of the faults of each part, and writes what it found to
``docs/figures/mutation.json``, from which ``docs/figures/reliability.py`` makes its section; with names of parts, only
those. ``python docs/figures/mutation.py --survivors`` tries again what the tests did not notice the last time.

A fault, a *mutant*, changes one expression or statement of a function: a comparison, a sign, a number, an argument, a
condition. Its code takes the place of the function's in a fork of one process, which then runs the tests that reach the
changed line, the shortest first, until one fails. Left out are the texts of errors, annotations, default values of
arguments and what is run when a module is imported.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import itertools
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIGURES = Path(__file__).with_suffix(".json")
REASONS = Path(__file__).with_name("mutation_reasons.json")
"""Why no test notices a mutant, by what it is told as: written by hand."""

SEED, SAMPLE = 0, 60
"""The seed of the sample, and the number of mutants of each part."""

NOT_PLANTED = "not planted:"
"""How a fork begins to say that a mutant is no code, such as one that reads a variable which is no longer set."""

LONGEST = 40.0
"""Seconds of tests for one mutant."""

PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "geometry": (
        ("geometry",),
        ("tests/geometry",),
    ),
    "level sets": (
        ("core/level.py",),
        (
            "tests/core",
            "tests/solvers/test_certificates.py",
            "tests/solvers/test_sfls.py",
            "tests/oracles/test_mirror_prox.py",
            "tests/oracles/test_smd_theory.py",
        ),
    ),
    "SFLS": (
        ("solvers/sfls.py",),
        (
            "tests/solvers/test_sfls.py",
            "tests/solvers/test_certificates.py",
            "tests/solvers/test_loop.py",
            "tests/solvers/test_stream_confidence.py",
            "tests/solvers/test_searches.py",
            "tests/solvers/test_verdicts.py",
            "tests/test_checks.py",
        ),
    ),
    "feasibility": (
        ("solvers/feasibility.py",),
        ("tests/solvers/test_feasibility.py", "tests/solvers/test_inconsistent.py", "tests/solvers/test_sfls.py"),
    ),
    "certificates": (
        ("core/certificate.py", "core/evidence.py", "core/confidence.py"),
        (
            "tests/core",
            "tests/solvers/test_certificates.py",
            "tests/solvers/test_sfls.py",
            "tests/solvers/test_stream_confidence.py",
            "tests/test_wrong_types.py",
        ),
    ),
    "verification": (
        ("core/first_order.py", "results/enclosed.py", "results/verification.py"),
        (
            "tests/results/test_claims.py",
            "tests/results/test_enclosed.py",
            "tests/results/test_verification.py",
            "tests/core/test_evidence.py",
            "tests/core/test_first_order.py",
            "tests/test_wrong_types.py",
        ),
    ),
    "checkpoint": (
        ("solvers/checkpoint.py", "core/codec.py", "files.py"),
        (
            "tests/solvers/test_checkpoint.py",
            "tests/solvers/test_descriptions.py",
            "tests/results/test_results.py",
            "tests/data/test_on_disk.py",
        ),
    ),
    "readers": (
        ("tables", "results/records.py", "results/saved_models.py"),
        (
            "tests/tables",
            "tests/results/test_results.py",
            "tests/results/test_saved_models.py",
            "tests/results/test_verification.py",
            "tests/test_wrong_types.py",
            "tests/test_promises.py::test_spoilt_files_are_read_or_refused_in_one_line",
        ),
    ),
}
"""The files of each part, in ``minmaxcon``, and the tests that try them."""

LEFT_OUT = "not test_limits and not kill and not test_compare and not within_a_second"
"""Tests that measure memory and time, end processes, or have threads that no fork has: they need one of their own."""

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
TEXTS = {"remedy", "need", "text", "message"}
UNTRIED = {"strict", "stacklevel"}


@dataclass
class Mutant:
    """A fault: in a tree of code, one node in the place of another."""

    file: str
    tree: ast.Module
    function: str
    lines: range
    owner: ast.AST
    field: str
    place: int | None
    new: Any

    def exchange(self) -> None:
        """Plant the fault, or take it out again."""
        held = getattr(self.owner, self.field)
        if self.place is None:
            setattr(self.owner, self.field, self.new)
            self.new = held
        else:
            held[self.place], self.new = self.new, held[self.place]

    def told(self) -> str:
        """Return where it is and what it changes."""
        shown = self.owner if isinstance(self.owner, ast.expr | ast.keyword) else None
        before = ast.unparse(shown or self._node())
        self.exchange()
        after = ast.unparse(shown or self._node())
        self.exchange()
        return f"{self.file}: {self.function}: {_short(before, after)}"

    def _node(self) -> ast.AST:
        held = getattr(self.owner, self.field)
        node: ast.AST = held if self.place is None else held[self.place]
        return node


def _short(before: str, after: str) -> str:
    """Return two texts of one line each, at most 80 characters around the first place where they differ."""
    one, other = (" ".join(text.split()) for text in (before, after))
    differ = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    begin = max(differ - 40, 0)
    cut = [
        ("..." if begin else "") + text[begin : begin + 80] + ("..." if len(text) > begin + 80 else "")
        for text in (one, other)
    ]
    return " → ".join(cut)


def variants(node: ast.AST) -> Iterator[Any]:  # noqa: C901 - one case for each kind of node
    """Yield what may stand in the place of a node."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            for i, op in enumerate(ops):
                swapped = [SWAPPED[type(op)]() if j == i else each for j, each in enumerate(ops)]
                yield ast.Compare(left, swapped, others)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPPED:
            yield ast.BinOp(left, SWAPPED[type(op)](), right)
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in SWAPPED:
            yield ast.AugAssign(target, SWAPPED[type(op)](), value)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(SWAPPED[type(op)](), values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1 if abs(value) <= 1e6 else 1000 * value)
        case ast.Constant(value=str() as value) if " " not in value:
            yield ast.Constant(f"XX{value}XX")
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Assign(targets=targets, value=value) if not _is_none(value):
            yield ast.Assign(targets, ast.Constant(None))
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Call(func=func, args=args, keywords=keywords):
            for i, arg in enumerate(args):
                if not isinstance(arg, ast.Constant | ast.Starred):
                    yield ast.Call(func, [*args[:i], ast.Constant(None), *args[i + 1 :]], keywords)
            for i, keyword in enumerate(keywords):
                if keyword.arg is not None and keyword.arg not in UNTRIED:
                    yield ast.Call(func, args, [*keywords[:i], *keywords[i + 1 :]])
        case ast.If(test=ast.Name() | ast.Call() | ast.Attribute() as test, body=body, orelse=orelse):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case _:
            return


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _untried(node: ast.AST) -> bool:
    """Whether nothing in a node is to be changed: texts, checks of the programmer's own, annotations."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id in TEXTS for target in node.targets)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.keyword):
        return node.arg in UNTRIED
    return isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.arguments)


def mutants(file: Path) -> Iterator[Mutant]:
    """Yield the mutants of the functions of a file, in the order of its text."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    name = str(file.relative_to(ROOT / "minmaxcon"))

    def within(owner: ast.AST, function: str, lines: range) -> Iterator[Mutant]:
        for field, value in ast.iter_fields(owner):
            if field in {"annotation", "returns", "decorator_list", "type_comment", "args"} and not isinstance(
                owner, ast.Call
            ):
                continue
            several = isinstance(value, list)
            for place, node in enumerate(value if several else [value]):
                if not isinstance(node, ast.AST) or _untried(node):
                    continue
                reach = _header(node) if isinstance(node, ast.stmt) else lines
                for new in variants(node):
                    planted = ast.fix_missing_locations(ast.copy_location(new, node))
                    yield Mutant(name, tree, function, reach, owner, field, place if several else None, planted)
                yield from within(node, function, reach)

    def functions(owner: ast.AST, prefix: str) -> Iterator[Mutant]:
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, ast.FunctionDef):
                yield from within(node, prefix + node.name, range(0))
            elif isinstance(node, ast.ClassDef):
                yield from functions(node, f"{prefix}{node.name}.")

    yield from functions(tree, "")


def _header(node: ast.stmt) -> range:
    """Return the lines of a statement, without those of the statements in it."""
    body = getattr(node, "body", None)
    end = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
    return range(node.lineno, max(end, node.lineno + 1))


def codes(tree: ast.Module, file: str) -> dict[tuple[str, int], list[CodeType]]:
    """Return the codes of all functions by name and line; several where a line has several lambdas."""
    found: dict[tuple[str, int], list[CodeType]] = {}
    left = [compile(tree, file, "exec")]
    while left:
        code = left.pop()
        found.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
        left += [each for each in code.co_consts if isinstance(each, CodeType)]
    return found


def plant(mutant: Mutant) -> None:
    """Put the changed code in the place of that of the functions of this process, and empty the caches."""
    file = str(ROOT / "minmaxcon" / mutant.file)
    before = codes(mutant.tree, file)
    mutant.exchange()
    after = codes(mutant.tree, file)
    planted = 0
    gc.unfreeze()  # the tests' own conftest hides what is imported from the collector
    for held in gc.get_objects():
        if type(held) is FunctionType and held.__code__.co_filename == file:
            key = held.__code__.co_qualname, held.__code__.co_firstlineno
            if len(before[key]) == len(after.get(key, ())):
                alike = [
                    code.co_code == held.__code__.co_code and code.co_names == held.__code__.co_names
                    for code in before[key]
                ]
                held.__code__ = after[key][alike.index(True)]
                planted += key[1] <= mutant.lines.start
        elif type(held).__name__ == "_lru_cache_wrapper":
            held.cache_clear()
    if not planted:
        raise LookupError(f"no function of this process has {mutant.told()}")


class Session:
    """The tests of a part: run once as they are, then for each mutant in a fork."""

    def __init__(self, files: list[Path], chosen: list[Mutant]) -> None:
        self.files, self.chosen = files, chosen
        self.survivors: list[Mutant] = []
        self.unreached: list[Mutant] = []
        self.impossible = 0

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run the tests and the mutants, in the place of pytest's own loop."""
        found = self._unchanged(session.items)
        self.seconds, reached = found["seconds"], found["reached"]
        items = [item for item in session.items if item.nodeid in self.seconds]
        print(f"{len(items)} of {len(session.items)} tests, {sum(self.seconds.values()):.0f} s", flush=True)
        if failed := self._killed(None, self._shortest({item.nodeid for item in items}, items)):
            raise SystemExit(f"{failed} in a fork without a mutant.")
        for k, mutant in enumerate(self.chosen):
            at = reached[str(ROOT / "minmaxcon" / mutant.file)]
            names = {name for line in mutant.lines for name in at.get(str(line), []) if name}
            tests = self._shortest(names, items)
            before = time.perf_counter()
            killed = self._killed(mutant, tests)
            if killed.startswith(NOT_PLANTED):
                self.impossible += 1
            elif not killed:
                (self.survivors if names else self.unreached).append(mutant)
            verdict = "killed" if killed else "SURVIVED" if names else "NOT REACHED"
            took = time.perf_counter() - before
            print(f"{k + 1:3} {verdict} {took:.1f} s {mutant.lines.start} {mutant.told()} {killed}", flush=True)
        return True

    def _unchanged(self, items: list[Any]) -> dict[str, Any]:
        """Run the tests in a fork without a mutant: return their seconds, and the tests that reach each line.

        The process that forks for the mutants runs no test itself, so that it has no threads that a fork would lack.
        """
        import coverage

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "found.json"
            if not (child := os.fork()):
                cover = coverage.Coverage(data_file=None, config_file=False, include=[*map(str, self.files)])
                cover.start()
                seconds = dict[str, float]()
                for item, following in itertools.zip_longest(items, items[1:]):
                    cover.switch_context(item.nodeid)
                    before = time.perf_counter()
                    if _fails(item, following):
                        print(f"left out, as it fails without a mutant: {item.nodeid}", flush=True)
                    else:
                        seconds[item.nodeid] = time.perf_counter() - before
                cover.stop()
                reached = {str(path): cover.get_data().contexts_by_lineno(str(path)) for path in self.files}
                found = {"seconds": seconds, "reached": reached, "modules": list(sys.modules)}
                file.write_text(json.dumps(found), encoding="utf-8")
                os._exit(0)
            os.waitpid(child, 0)
            known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        for name in known["modules"]:
            with contextlib.suppress(BaseException):
                importlib.import_module(name)
        return known

    def _shortest(self, names: set[str], items: list[Any]) -> list[Any]:
        """Return the tests with these names, the shortest first, as many as there is time for."""
        found, total = list[Any](), 0.0
        for item in sorted((item for item in items if item.nodeid in names), key=lambda i: self.seconds[i.nodeid]):
            total += self.seconds[item.nodeid]
            if total <= LONGEST or not found:
                found.append(item)
        return found

    def _killed(self, mutant: Mutant | None, tests: list[Any]) -> str:
        """Return what noticed the mutant, tests or the clock; nothing where nothing did."""
        deadline = time.monotonic() + 20.0 + 4.0 * sum(self.seconds[item.nodeid] for item in tests)
        told, tell = os.pipe()
        with os.fdopen(told, "rb") as heard, tempfile.TemporaryFile() as begun:
            child = os.fork()
            if child == 0:
                _work(mutant, tests, tell, begun)
            os.close(tell)
            while time.monotonic() < deadline:
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    said = heard.read().decode()
                    return said if status == 0 else said or f"ended with {status}"
                time.sleep(0.01)
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"the clock in {begun.read().decode()}"


def _work(mutant: Mutant | None, tests: list[Any], tell: int, begun: Any) -> None:
    """Run tests with a mutant in a fork, say which fails, and end the process."""
    try:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        held = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (held + (4 << 30), held + (4 << 30)))
        if mutant is not None:
            try:
                plant(mutant)
            except Exception as error:
                os.write(tell, f"{NOT_PLANTED} {error!r}".encode())
                os._exit(0)
        for item, following in itertools.zip_longest(tests, tests[1:]):
            begun.seek(0)
            begun.truncate()
            begun.write(item.nodeid.encode())
            begun.flush()
            begun.seek(0)
            if _fails(item, following):
                os.write(tell, item.nodeid.encode()[:4000])
                break
        os._exit(0)
    except BaseException as error:
        os.write(tell, type(error).__name__.encode())
        os._exit(0)


def _fails(item: Any, following: Any) -> bool:
    """Run a test, and say whether it fails."""
    from _pytest.runner import runtestprotocol

    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def tried(part: str, before: dict[str, Any] | None) -> dict[str, Any]:
    """Try the sample of a part, or again what survived ``before``, and return the counts and what survives.

    The sample is the one that was drawn then, whatever has changed in the code since; what is no longer in it is left
    out of the count.
    """
    import pytest

    paths, tests = PARTS[part]
    files = sorted(
        file
        for path in paths
        for file in ([ROOT / "minmaxcon" / path] if path.endswith(".py") else (ROOT / "minmaxcon" / path).glob("*.py"))
    )
    every = [mutant for file in files for mutant in mutants(file)]
    if before is None:
        chosen = random.Random(SEED).sample(every, min(SAMPLE, len(every)))
        total = len(chosen)
    else:
        wanted = {*before["survived"], *before["not reached"]}
        chosen = list({mutant.told(): mutant for mutant in every if mutant.told() in wanted}.values())
        total = before["tried"] - len(wanted) + len(chosen)
    session = Session(files, chosen)
    os.environ.setdefault("HYPOTHESIS_PROFILE", "ci")
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not rel", "-k", LEFT_OUT]
    status = pytest.main([*options, *(str(ROOT / test) for test in tests)], plugins=[session])
    if status != pytest.ExitCode.OK:
        raise SystemExit(f"{part}: pytest ended with {status}.")
    if session.impossible > total // 4:
        raise SystemExit(f"{part}: {session.impossible} of {total} mutants could not be planted.")
    return {
        "mutants": len(every),
        "tried": total - session.impossible,
        "survived": [mutant.told() for mutant in session.survivors],
        "not reached": [mutant.told() for mutant in session.unreached],
    }


def main(words: list[str]) -> None:
    """Try parts and write what was found."""
    again = "--survivors" in words
    names = [word for word in words if word != "--survivors"]
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise SystemExit(f"no such part: {unknown[0]}; known are {', '.join(PARTS)}.")
    os.chdir(ROOT)
    found = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    for part in names or list(PARTS):
        found[part] = tried(part, found.get(part) if again else None)
        FIGURES.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

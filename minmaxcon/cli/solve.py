"""``minmaxcon solve``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

import minmaxcon as mm
from minmaxcon.cli.options import Flag, Whole, numbers_of
from minmaxcon.cli.output import Output

if TYPE_CHECKING:
    from minmaxcon.cli.running import Finished

__all__ = ["solve"]

_DATA = Group("Data", sort_key=1)
_PROBLEM = Group("Problem", sort_key=2)
_SOLVER = Group("Solver", sort_key=3)
_OUTPUT = Group("Output", sort_key=4)


def solve(
    name: str,
    /,
    *,
    data: Annotated[str | None, Parameter(group=_DATA)] = None,
    data_dir: Annotated[Path | None, Parameter(group=_DATA)] = None,
    label: Annotated[str | None, Parameter(group=_DATA)] = None,
    positive: Annotated[str | None, Parameter(group=_DATA, allow_leading_hyphen=True)] = None,
    sensitive: Annotated[str | None, Parameter(group=_DATA)] = None,
    protected: Annotated[str | None, Parameter(group=_DATA, allow_leading_hyphen=True)] = None,
    keep_sensitive: Annotated[Flag, Parameter(group=_DATA)] = False,
    test_fraction: Annotated[float | None, Parameter(group=_DATA)] = None,
    standardize: Annotated[bool | None, Parameter(group=_DATA, negative="--no-standardize")] = None,
    metric: Annotated[str | None, Parameter(group=_PROBLEM)] = None,
    kappa: Annotated[str | None, Parameter(group=_PROBLEM, allow_leading_hyphen=True)] = None,
    max_gap: Annotated[str | None, Parameter(group=_PROBLEM, allow_leading_hyphen=True)] = None,
    objective: Annotated[str | None, Parameter(group=_PROBLEM)] = None,
    model: Annotated[str | None, Parameter(group=_PROBLEM)] = None,
    solver: Annotated[str | None, Parameter(group=_SOLVER)] = None,
    steps: Annotated[Whole | None, Parameter(group=_SOLVER)] = None,
    batch_size: Annotated[Whole | None, Parameter(group=_SOLVER)] = None,
    seed: Annotated[Whole, Parameter(group=_SOLVER)] = 0,
    time_limit: Annotated[float | None, Parameter(group=_SOLVER)] = None,
    out: Annotated[Path | None, Parameter(group=_OUTPUT)] = None,
    overwrite: Annotated[Flag, Parameter(group=_OUTPUT)] = False,
    json: Annotated[Flag, Parameter(group=_OUTPUT)] = False,
    quiet: Annotated[Flag, Parameter(group=_OUTPUT)] = False,
    **options: Annotated[str, Parameter(group=_PROBLEM, allow_leading_hyphen=True)],
) -> int:
    """Solve a problem for one bound or several, and say what is proved.

    The status says how the solve ended; objective and constraints are measured again outside the solver, exactly, on
    the training data; the certificate bounds the optimal value from both sides. Options of the problem that are not
    listed here follow by their names in Python, such as `--bound 0.1` or `--bound 0.1,0.2`. Exit status 0 if every run
    is solved, 1 if not, 2 for bad input.

    Parameters
    ----------
    name
        The problem, such as fair_auc; `minmaxcon problems` lists all.
    data
        A data set's name (`minmaxcon data` lists them), or a CSV, Parquet or LIBSVM file.
    data_dir
        Folder with the files of the named data sets.
    label
        Column of the label in a file, any two values.
    positive
        The positive value of the label.
    sensitive
        Column of the sensitive attribute in a file; for LIBSVM the index of a feature.
    protected
        The protected value of the sensitive column, against all others.
    keep_sensitive
        Make the sensitive column a feature too.
    test_fraction
        Share of a file's rows that is held out; 0.3 by default.
    standardize
        Whether features are standardised on the training part; yes for files, else as the data set declares.
    metric
        The fairness metric, by name.
    kappa
        The bound is 1 + kappa. Several, separated by commas, are solved together in one solve.
    max_gap
        A target in the unit of the metric instead of kappa: the largest true gap on the training data. Several,
        separated by commas, are solved together.
    objective
        What is best subject to max_gap: auc (default), quadratic_auc or logistic.
    model
        The scoring model: linear (default) or mlp, one layer of 10 sigmoid units.
    solver
        sfls, the level-set method (default for kappa); iqrc, the proximal method for weakly convex problems;
        successive, successive approximation of true measures (default for max_gap); or a rival that `minmaxcon compare
        --help` names.
    steps
        Steps of mirror descent in the first level (later ones grow); 4000 for sfls, 1000 for iqrc by default.
    batch_size
        Samples a step; 100 by default.
    seed
        Seed of split and solve; the same seed gives the same bits.
    time_limit
        Seconds after which the solve ends with the best feasible point so far.
    out
        Folder for result.json, model.safetensors (with several kappas model-0.safetensors, ... in their order),
        trace.csv and trace.png. It must not exist.
    overwrite
        Replace a folder that holds an earlier result, or nothing.
    json
        Print the content of result.json on standard output, and nothing else there.
    quiet
        No progress bar and no notes.
    options
        Further options of the problem.
    """
    from minmaxcon.cli.running import build_solver, finish, load, options_of, result_files
    from minmaxcon.results.folders import check_folder, write_folder

    output = Output(json=json, quiet=quiet)
    if seed < 0:
        raise mm.InvalidInput("seed", seed, "must be at least 0.")
    solver = solver or ("sfls" if max_gap is None else "successive")
    if (solver == "successive") != (max_gap is not None):
        raise mm.InvalidInput("solver", solver, "successive approximation is for max_gap, and nothing else is.")
    method = build_solver(solver, steps, batch_size)
    given = {
        "data": data,
        "metric": metric,
        "kappa": numbers_of("kappa", kappa),
        "max_gap": numbers_of("max_gap", max_gap),
        "objective": objective,
        "model": model,
        "data_dir": None if data_dir is None else str(data_dir),
        "label": label,
        "positive": positive,
        "sensitive": sensitive,
        "protected": protected,
        "keep_sensitive": keep_sensitive or None,
        "test_fraction": test_fraction,
        "standardize": standardize,
        "seed": seed,
        **options_of(name, options, solve),
    }
    if out is not None:
        check_folder(out, overwrite=overwrite)
    with output.guarded():
        loaded = load(name, given)
        solution = mm.solve(loaded.problem, method, seed=seed, time_limit=time_limit, callbacks=output.progress())
        asked = {"solver": solver, "steps": steps, "batch_size": batch_size, "time_limit": time_limit}
        finished = finish(loaded, solution, asked)
        files = {} if out is None else result_files(finished, output)
    if out is not None:
        write_folder(out, files, overwrite=overwrite)
    _tell(finished, output, "" if out is None else f"written: {out} ({', '.join(files)})")
    return 0 if finished.record.solved else 1


def _tell(finished: Finished, output: Output, written: str) -> None:
    from minmaxcon.cli.report import report
    from minmaxcon.results.records import to_json

    if output.json:
        output.result(to_json(finished.record))
        for sentence in finished.notes.get("Mind", ()):
            output.note(f"note: {sentence}")
        if written:
            output.note(written)
    else:
        output.result(report(finished, notes=not output.quiet) + (f"\n{written}\n" if written else ""))

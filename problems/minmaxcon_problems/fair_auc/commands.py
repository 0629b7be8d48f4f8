"""The commands of fair AUC: ``minmaxcon demo``, ``pareto``, ``reproduce``, ``report`` and ``bench``."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

import minmaxcon as mm
from minmaxcon.cli import Flag, Output, Place, ProgressLine, Whole, names_of, one_line

if TYPE_CHECKING:
    from .labelled import FileColumns
    from .study.sweep import Tick

__all__ = ["bench", "demo", "pareto", "report", "reproduce"]

bench = App(name="bench", help="Measure how fast steps are on this machine.")

_MOST_SEEDS, _MOST_JOBS = 1000, 1024

Peers = Annotated[bool, Parameter(negative="--no-peers")]
Conic = Annotated[bool, Parameter(negative="--no-conic")]


def demo(
    *, out: Place | None = None, overwrite: Flag = False, seed: Whole = 0, json: Flag = False, quiet: Flag = False
) -> int:
    """Rank workers by wage without and with a limit on the gap between women and men, and show what it costs.

    6,763 workers, half of them held out; five steps from an ordinary model to a certificate. No network is needed, and
    every machine prints the same.

    Parameters
    ----------
    out
        Folder for demo.png and result.json. By default minmaxcon-demo in the current folder, where only an earlier
        demo is replaced; with `--json` nothing is written by default.
    overwrite
        Replace a folder that holds an earlier result, or nothing.
    seed
        Seed of split and solve.
    json
        Print the same as JSON on standard output, and nothing else there.
    quiet
        No notes.
    """
    from .study.demo import run_demo

    return run_demo(Output(json=json, quiet=quiet), out=out, overwrite=overwrite, seed=seed)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Options of a file of one's own.

    Parameters
    ----------
    label
        Column of the label in a file.
    positive
        The positive label.
    sensitive
        Column of the sensitive attribute in a file.
    protected
        Its protected value, against all others.
    keep_sensitive
        Whether the sensitive column is a feature too.
    ignore
        Columns of a file that are left out, such as an identifier, separated by commas.
    unknown_category
        How a category that the training rows do not have is treated in the files of `--validation` and `--test`: it is
        an error (refuse), or its row has 0 in all features of the column (zero).
    """

    label: str | None = None
    positive: str | None = None
    sensitive: str | None = None
    protected: str | None = None
    keep_sensitive: Flag = False
    ignore: str | None = None
    unknown_category: Literal["refuse", "zero"] = "refuse"

    def meant(self) -> FileColumns:
        """Return them as the problem takes them."""
        from .labelled import FileColumns

        return FileColumns.of(**asdict(self))


_NO_COLUMNS = _Columns()


def report(
    *,
    data: str,
    out: Place,
    validation: str | None = None,
    test: str | None = None,
    columns: _Columns = _NO_COLUMNS,
    test_fraction: float | None = None,
    data_dir: Place | None = None,
    metric: str = "inter_group",
    max_gap: str = "0.05",
    model: str = "linear",
    alpha: float | None = None,
    use_group: Flag = False,
    title: str = "Fairness report",
    seed: Whole = 0,
    overwrite: Flag = False,
    quiet: Flag = False,
) -> int:
    """Train a fair model on one part of the rows, or one file, and report on the other: one HTML page for an auditor.

    The page needs no network. It shows what was asked and reached on both parts with intervals, rows of each label and
    group, ROC curves and scores by group, calibration, the price of the limit, coefficients, settings and versions.
    The model is that of FairAUCClassifier.

    Parameters
    ----------
    data
        Name of a data set, or a CSV, Parquet or LIBSVM file.
    out
        File for the page, such as report.html.
    validation
        File of rows that are to meet the limit in the place of the training rows; it goes with `--test`.
    test
        File of the rows that the report is about, where `--data` is the file of the training rows and is not split.
    test_fraction
        Share of the rows that the report is about; 0.3 by default.
    data_dir
        Folder of data files.
    metric
        The fairness metric.
    max_gap
        Largest allowed gap on the training part, or on the rows of `--validation`; of several, separated by commas, the
        page shows the model of each.
    model
        The scoring model, linear or mlp.
    alpha
        Strength of the ridge penalty, which is chosen by default, or of weight decay.
    use_group
        Whether the model may read the group.
    title
        Heading of the page.
    seed
        Seed of split and fit.
    overwrite
        Replace a file that exists.
    quiet
        No notes.
    """
    import numpy as np
    import pyarrow as pa

    from minmaxcon.results import check_file

    from .estimator import FairAUCClassifier
    from .estimator.reasons import FitWarning
    from .plugin import FairAUC

    output = Output(json=False, quiet=quiet)
    check_file(out, overwrite=overwrite)
    gaps = _numbers(max_gap, "max_gap")
    wanted: Any = gaps if len(gaps) > 1 else gaps[0]
    with output.guarded():
        others = {name: part for name, part in (("validation", validation), ("test", test)) if part is not None}
        rows = FairAUC().dataset(data, data_dir, columns.meant(), test_fraction, False, seed, others)

        def parts(one: Any) -> tuple[Any, Any, Any]:
            """Return features with their names, labels and groups as the data have them."""
            features = one.features
            if not hasattr(features, "tocsr"):
                features = pa.table(dict(zip(one.feature_names, features.T, strict=True)))
            meant = [
                np.array(values, dtype=object if isinstance(values[0], str) else None)[(signs > 0).astype(int)]
                for values, signs in ((one.label_values, one.label), (one.group_values, one.group))
            ]
            return features, *meant

        fair = FairAUCClassifier(
            metric,
            max_gap=wanted,
            model=model,
            alpha=alpha,
            use_group=use_group,
            positive=rows.train.label_values[1],
            protected=rows.train.group_values[1],
            random_state=seed,
        )
        X, y, group = parts(rows.train)
        held: dict[str, Any] = {}
        if validation is not None:
            held = dict(zip(("X_val", "y_val", "sensitive_features_val"), parts(rows.validation), strict=True))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UserWarning)
            fair.fit(X, y, sensitive_features=group, **held)
        X, y, group = parts(rows.test)
        fair.report(out, X, y, sensitive_features=group, title=title, rows_name="held-out rows", overwrite=overwrite)
        found = fair.measure(X, y, sensitive_features=group)
    for note in (*rows.notes, *(str(one.message) for one in told if not issubclass(one.category, FitWarning))):
        output.note(f"note: {one_line(note)}")
    meeting = "training rows" if validation is None else "validation rows"
    output.result(
        f"{fair.status_.name}: {fair.reason_}\n{meeting}: gap {fair.gap_}, AUC {fair.auc_}\n"
        f"held-out rows: gap {found.gap}, AUC {found.auc}\nwritten: {out}\n"
    )
    reached: Any = fair.gap_
    return 0 if reached.value <= (fair.max_gap_ or 0.0) else 1


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise mm.InvalidInput(option, text, "must be a number, or several separated by commas.") from None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class _Sweep:
    """Options of both commands.

    Parameters
    ----------
    out
        Folder for runs, tables and figures.
    checkpoint
        Folder that holds the runs that have ended, in the place of `--out`, so that the command can go on after
        whatever ends it. One that holds runs already is refused, unless `--resume` names it too.
    resume
        Folder from which the command goes on: what had ended there is not done again. With `--checkpoint` of the same
        folder it begins where there is nothing yet. Without both options the command goes on from `--out`.
    seeds
        Number of seeds, 0 to N - 1.
    methods
        Only these methods, separated by commas.
    jobs
        Processes at a time, each on one thread; by default one a core.
    backend
        Where they run: loky, processes of this machine; dask, the workers of the cluster that DASK_SCHEDULER_ADDRESS
        names, else of one on this machine; or another backend of joblib.
    data_dir
        Folder of data files.
    quick
        The small grid, with fewer seeds.
    overwrite
        Compute again the files in DIR that another version or setting has left; those that agree are kept.
    json
        Print the summary as JSON on standard output, and nothing else there.
    quiet
        No progress and no notes.
    """

    out: Place
    checkpoint: Place | None = None
    resume: Place | None = None
    seeds: Whole | None = None
    methods: str | None = None
    jobs: Whole | None = None
    backend: str = "loky"
    data_dir: Place | None = None
    quick: Flag = False
    overwrite: Flag = False
    json: Flag = False
    quiet: Flag = False


def pareto(
    name: str,
    /,
    *,
    data: str,
    metric: str,
    model: str = "linear",
    validation: str | None = None,
    test: str | None = None,
    columns: _Columns = _NO_COLUMNS,
    sweep: _Sweep,
) -> int:
    """Compare the fronts of all methods on one data set or file, metric and model, with error bars over seeds.

    Of a file it shows the models of ten targets, with AUC and gap on training, validation and test rows, says which one
    to take and how to train it, and sets the other ways to a fair model beside it.

    Every run that ends is written to DIR/runs at once: started again after any end, the same command goes on where it
    was.

    Parameters
    ----------
    name
        The problem.
    data
        The data set, or a CSV, Parquet or LIBSVM file; of a file each seed divides the rows anew, 60% to train, 20% to
        select and 20% to judge models, every label and group alike, where no other parts are given.
    metric
        The metric.
    model
        The scoring model.
    validation
        File of the rows that models are selected by; by default a quarter of the training rows is held out, by seed.
    test
        File of the rows that models are judged by, beside `--data`, the file of the training rows; by default a fifth
        of the rows is held out, by seed.
    """
    parts = {"data": data, "validation": validation, "test": test}
    files = {option: path for option, path in parts.items() if path is not None}
    return _fronts(name, {"data": [data], "metric": [metric], "model": [model]}, sweep, (files, columns))


def reproduce(
    name: str = "fair_auc",
    /,
    *,
    data: str | None = None,
    metric: str | None = None,
    model: str | None = None,
    sweep: _Sweep,
) -> int:
    """Run the experiments of the paper: every data set, metric, model, method and seed, with its figures and tables.

    Every run that ends is written to DIR/runs at once: started again after any end, the same command goes on where it
    was.

    Parameters
    ----------
    name
        The problem.
    data
        Only these data sets, separated by commas.
    metric
        Only these metrics, separated by commas.
    model
        Only these models, separated by commas.
    """
    given = {"data": data, "metric": metric, "model": model}
    return _fronts(name, {option: names_of(option, text) for option, text in given.items()}, sweep)


def _fronts(
    name: str,
    panels: Mapping[str, list[str] | None],
    asked: _Sweep,
    file: tuple[Mapping[str, str], _Columns] | None = None,
) -> int:
    """Run what was asked for, write the folder, and print its tables; ``file`` are the parts, and what is in them."""
    from minmaxcon.results import check_file, to_json

    from .study import report as fronts
    from .study.own_front import own_report
    from .study.own_rows import own_rows
    from .study.study import FairAUCStudy
    from .study.sweep import Runs, run_sweep

    if name != "fair_auc":
        raise mm.UnknownName("name", name, ("fair_auc",), "Only this problem has a study of fronts.")
    for option in ("out", "checkpoint", "resume"):
        if (folder := getattr(asked, option)) is not None:
            fronts.check_out(folder, option)
    check_file(asked.out / "summary.json", overwrite=True)
    runs = Runs.of(asked.out, asked.checkpoint, asked.resume)
    methods = names_of("methods", asked.methods)
    seeds = _checked("seeds", asked.seeds, _MOST_SEEDS)
    jobs = _checked("jobs", asked.jobs, _MOST_JOBS) or os.cpu_count() or 1
    output = Output(asked.json, asked.quiet)
    line = ProgressLine(output, every=10.0)
    with output.guarded():
        files, columns = file or ({}, _NO_COLUMNS)
        others = {option: path for option, path in files.items() if option != "data"}
        own = own_rows(files["data"], columns.meant(), others) if files else None
        study = FairAUCStudy() if own is None else FairAUCStudy(own)
        if own is not None:
            panels = {**panels, "data": [own.name]}
        planned = fronts.plan(study, name, **panels, methods=methods, seeds=seeds, quick=asked.quick)
        try:
            with runs.named():
                sweep = run_sweep(
                    study,
                    planned.configurations,
                    runs,
                    jobs=jobs,
                    backend=asked.backend,
                    data_dir=None if asked.data_dir is None else str(asked.data_dir),
                    overwrite=asked.overwrite,
                    report=lambda tick: line(_told(tick), done=tick.done == tick.total),
                )
        finally:
            line.end()
        for note in sweep.notes:
            output.note(f"note: {note}")
        if sweep.interrupted:
            done = f"interrupted: {len(sweep.records)} of {sweep.total} configurations are finished and kept"
            again = "run the same command again to go on."
            rest = again if runs.option == "out" else f"go on with --resume {shlex.quote(str(runs.folder.parent))}."
            output.failure(f"{done}; {rest}")
            return 1
        if own is None:
            found = fronts.report(study, planned, sweep)
        else:
            found = own_report(planned, sweep, own, files, str(asked.out), methods)
        fronts.write_report(asked.out, found)
    output.result(to_json(found.summary) if output.json else f"{found.text}\nwritten: {asked.out}\n")
    if output.json:
        output.note(f"written: {asked.out}")
    if sweep.failures:
        first, why = next(iter(sweep.failures.items()))
        count = f"{len(sweep.failures)} of {sweep.total} configurations failed"
        output.failure(f"{count} and are left out, first {first}: {one_line(why)}")
    return 0 if sweep.finished else 1


def _checked(option: str, value: int | None, most: int) -> int | None:
    if value is not None and not 1 <= value <= most:
        raise mm.InvalidInput(option, value, f"must be from 1 to {most:,}.")
    return value


def _told(tick: Tick) -> str:
    left = f", about {_time(tick.left)} left" if tick.done < tick.total else ""
    return f"{tick.done} of {tick.total} configurations, {_time(tick.seconds)}{left}: {tick.name}"


def _time(seconds: float) -> str:
    """Return a time as people say it.

    >>> _time(41.6), _time(200.0)
    ('42 s', '3.3 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


@bench.command
def steps(
    *,
    seconds: float = 30.0,
    runs: str = "1,16,256,1024",
    engines: str | None = None,
    peers: Peers = True,
    seed: int = 0,
    json: Flag = False,
    quiet: Flag = False,
) -> None:
    """Measure microseconds a step of linear fair AUC: batch 100, 123 dense features, adaptive steps, one thread.

    Beside it stand the two matrix products that no step can do without, and other packages (`pip install
    'minmaxcon[bench]'`) on the same mini-batches. All take turns in one process; medians are shown.

    Parameters
    ----------
    seconds
        Time to measure for; about five more pass before the first measurement.
    runs
        Numbers of runs that one solve carries, separated by commas.
    engines
        Some of numpy, torch and jax, separated by commas; by default those that are installed. With jax all problems
        are measured beside, interpreted and compiled.
    peers
        Whether other packages are measured where they are installed.
    seed
        Seed of the synthetic data and of the mini-batches.
    json
        Print the result as data, and nothing else.
    quiet
        Show no progress.
    """
    from .study.bench import bench_steps

    wanted = None if engines is None else [name.strip() for name in engines.split(",")]
    result = bench_steps(
        seconds=seconds, runs=_counts(runs), engines=wanted, peers=peers, seed=seed, progress=not quiet
    )
    _tell(result, Output(json=json, quiet=quiet))


def _tell(found: Any, output: Output, figure: Path | None = None, *, overwrite: bool = False) -> None:
    """Print a measurement, as data where the output is JSON, after its figure has been written where one is wanted."""
    from minmaxcon.results import png, to_json, write_file

    if figure is not None:
        write_file(figure, png(found.figure()), overwrite=overwrite)
    output.result(to_json(found.as_dict()) if output.json else found.table())


@bench.command
def target(
    *,
    data: str = "a9a,synthetic",
    metrics: str = "group,inter_group,intra_group",
    rows: str = "10000,100000,1000000",
    features: str = "20,120",
    repeats: Whole = 5,
    limit: float = 60.0,
    search: float = 2.0,
    peers: Peers = True,
    conic: Conic = True,
    seed: Whole = 0,
    data_dir: Place | None = None,
    figure: Place | None = None,
    overwrite: Flag = False,
    json: Flag = False,
    quiet: Flag = False,
) -> None:
    """Measure time and samples to a feasible point within 1% and 0.1% of the optimal value, for linear fair AUC.

    kappa is 0.2, and the unit of a gap the objective of the constant model less the optimal value. Contestants are the
    automatic solver, other packages (`pip install 'minmaxcon[bench]'`) with the best of 24 settings each, and cvxpy
    with Clarabel. Seconds are of the processor, on one thread.

    Parameters
    ----------
    data
        Data sets, separated by commas; `synthetic` is drawn.
    metrics
        Metrics of the named data sets.
    rows
        Numbers of synthetic rows.
    features
        Numbers of synthetic features.
    repeats
        Runs of each method, whose medians are shown.
    limit
        Seconds after which a run ends.
    search
        Seconds for each setting of another package, which are not counted.
    peers
        Whether other packages are measured where they are installed.
    conic
        Whether the conic solver is measured.
    seed
        Seed of the synthetic data and of the first run.
    data_dir
        Folder of data files.
    figure
        PNG file for the seconds by rows of the synthetic data.
    overwrite
        Replace that file.
    json
        Print the result as data, and nothing else.
    quiet
        Show no progress.
    """
    from minmaxcon.results import check_file

    from .study.to_target import bench_target

    if figure is not None:
        check_file(figure, overwrite=overwrite)
    found = bench_target(
        data=names_of("data", data) or [],
        metrics=names_of("metrics", metrics) or [],
        rows=_counts(rows, "rows"),
        features=_counts(features, "features"),
        repeats=repeats,
        limit=limit,
        search=search,
        peers=peers,
        conic=conic,
        seed=seed,
        data_dir=data_dir,
        progress=not quiet,
    )
    _tell(found, Output(json=json, quiet=quiet), figure, overwrite=overwrite)


@bench.command
def scale(
    *,
    rows: str = "1000,10000,100000",
    features: str = "10,40,160,640",
    constraints: str = "1,4,16,64",
    groups: str = "2,8,32,128",
    runs: str = "1,16,256",
    only: str | None = None,
    limit: float = 5.0,
    seed: Whole = 0,
    figure: Place | None = None,
    overwrite: Flag = False,
    json: Flag = False,
    quiet: Flag = False,
) -> None:
    """Measure how a step, a solve and memory grow with rows, features, constraints, groups and runs, one at a time.

    Rows, features and runs are those of linear fair AUC on synthetic rows; each constraint is the mean loss of a part
    of the rows; groups are those of one worst-group risk. Seconds are of the processor, on one thread. The default
    takes about a minute.

    Parameters
    ----------
    rows
        Numbers of rows, separated by commas.
    features
        Numbers of features.
    constraints
        Numbers of constraints.
    groups
        Numbers of groups.
    runs
        Numbers of runs that one solve carries.
    only
        Only these of rows, features, constraints, groups and runs, separated by commas.
    limit
        Seconds after which a solve ends.
    seed
        Seed of the synthetic data and of the solves.
    figure
        PNG file for the curves on logarithmic axes.
    overwrite
        Replace that file.
    json
        Print the result as data, and nothing else.
    quiet
        Show no progress.
    """
    from minmaxcon.results import check_file

    from .study.scale import bench_scale

    if figure is not None:
        check_file(figure, overwrite=overwrite)
    given = {"rows": rows, "features": features, "constraints": constraints, "groups": groups, "runs": runs}
    chosen = names_of("only", only) or list(given)
    for name in chosen:
        if name not in given:
            raise mm.UnknownName("only", name, given)
    sizes = {name: _counts(given[name], name) for name in chosen}
    found = bench_scale(sizes=sizes, limit=limit, seed=seed, progress=not quiet)
    _tell(found, Output(json=json, quiet=quiet), figure, overwrite=overwrite)


def _counts(text: str, option: str = "runs") -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise mm.InvalidInput(
            option, text, "must be whole numbers separated by commas, such as 1,16,256,1024."
        ) from None

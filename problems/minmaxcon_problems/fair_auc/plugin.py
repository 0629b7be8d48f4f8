"""The plug-in: loading by name, true measures, saved models and their predictions."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import finite_array, instance, mapping, number
from minmaxcon.core import solution_point
from minmaxcon.tables import encoding_from_dict
from minmaxcon_problems.fair_auc.surrogate.build import build_problem
from minmaxcon_problems.fair_auc.target.objectives import named_objective
from minmaxcon_problems.fair_auc.target.problem import Target, build_target_problem, without_target

from .bounds import Details, resolved_bound
from .calibration import LogOdds
from .datasets import (
    DATASETS,
    VARIABLE,
    Dataset,
    check_folder,
    dataset_from,
    dataset_of_parts,
    load_dataset,
    missing_files,
)
from .download import DOWNLOADS, download
from .evaluation import against_free, cautions, enclosed_gap, evaluation, scores_of, target_cautions
from .labelled import FileColumns, LabelledData, UnknownCategory
from .measured import Measured
from .metrics import METRICS, resolve_metric
from .new_rows import measure_new_rows
from .own_files import check_parts, check_unknown_category, looks_like_file, rows_of_files
from .streamed import LargeDataset, large_evaluation, large_problem, load_large, too_large

__all__ = ["FairAUC", "model_arrays", "plugin", "score_rows"]


_DESCRIPTION = "must be the description of a model, which export() returns."


class FairAUC(mm.ProblemPlugin):
    """Maximise AUC subject to an AUC-based fairness constraint.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> problem = mm.load_problem("fair_auc", data="loanapp", metric="inter_group", kappa=[0.1, 0.2])
    >>> problem.bounds().shape  # two runs of two constraints
    (2, 2)
    """

    name = "fair_auc"
    summary = "Train a scorer that maximises AUC subject to an AUC-based fairness constraint."
    measures: Mapping[str, str] = {"auc": "AUC", "auc_gap": "true gap"}  # never changed in place

    def load(  # one flat list of options, as on the command line
        self,
        data: Any = "loanapp",
        metric: Any = "inter_group",
        kappa: float | Sequence[float] | None = None,
        *,
        validation: Any = None,
        test: Any = None,
        max_gap: float | Sequence[float] | None = None,
        objective: str | None = None,
        alpha: float | Literal["auto"] | None = None,
        data_dir: str | Path | None = None,
        label: Any = None,
        positive: Any = None,
        sensitive: Any = None,
        protected: Any = None,
        keep_sensitive: bool = False,
        ignore: str | Sequence[str] | None = None,
        unknown_category: UnknownCategory = "refuse",
        test_fraction: float | None = None,
        standardize: bool | None = None,
        seed: int = 0,
        c1: float = 0.5,
        c2: float = 1.0,
        radius: float = 10.0,
        model: Any = "linear",
        engine: str = "numpy",
        device: str = "cpu",
        dtype: str | None = None,
    ) -> mm.MinMaxProblem:
        r"""Load data and build the problem.

        Parameters
        ----------
        data : str, path, Dataset or LabelledData
            A data set's name (``minmaxcon data`` lists them), a CSV, Parquet or LIBSVM file, or data at hand. A folder
            of Parquet files, an address of fsspec, and a Parquet or LIBSVM file whose table would take more than half
            of the memory (``--memory`` sets how much) are read in pieces and kept on disk.
        metric : str or four subsets
            The fairness metric, by name; or the subsets G1, G1', G2, G2'.
        validation, test : str, path or data frame, optional
            Files of the validation and the test rows, where ``data`` is the file of the training rows and is not split.
            They have its columns; categories, scaling, and what labels and groups mean are learned from ``data`` alone.
            Validation rows are measured, and choose nothing.
        kappa : float or sequence of float, optional
            The surrogate's bound is :math:`1 + \kappa`; several are solved together in one solve. 0.1 where no
            ``max_gap`` is given.
        max_gap : float or sequence of float, optional
            A target in the unit of the metric instead of kappa: the largest true gap of AUCs on the training part.
            Several are solved together.
        objective : {"auc", "quadratic_auc", "logistic"}, optional
            What is best subject to ``max_gap``: the AUC itself (auc, the default), its quadratic loss (quadratic_auc),
            or the logistic loss (logistic). With ``kappa`` it is always the quadratic loss, and nothing can be chosen.
        alpha : float or "auto", optional
            With ``max_gap``, strength of the ridge penalty of a linear model, in the unit of scikit-learn's Ridge on
            standardised features (auto chooses it as FairAUCClassifier does), or weight decay of a network. None by
            default.
        data_dir : path, optional
            Folder with the files of the named data sets.
        label
            Column of the label in a file, any two values.
        positive
            The positive value of the label.
        sensitive
            Column of the sensitive attribute in a file; for LIBSVM the index of a feature.
        protected
            The protected value of the sensitive column, against all others.
        keep_sensitive : bool
            Whether the sensitive column is a feature too.
        ignore : str or sequence of str, optional
            Columns of a file that are left out, such as an identifier; names separated by commas, or a sequence of
            them. Files of other parts may lack these columns.
        unknown_category : {"refuse", "zero"}
            How a category of validation or test files that is not in the training rows is treated: it is an error, or
            its row has 0 in all features of this column; a note counts such rows.
        test_fraction : float, optional
            Share of the rows held out, for files and data at hand; 0.3 by default.
        standardize : bool, optional
            Whether features are standardised on the training part; by default as the data set declares, yes for files.
        seed : int
            Seed of the split and of a network's starting parameters.
        c1 : float
            Scale of the surrogate's loss :math:`c_1 (c_2 - t)^2` of a difference t of two scores.
        c2 : float
            Margin of that loss.
        radius : float
            Radius of the ball of the model's parameters, in the units in which it is trained.
        model : {"linear", "mlp"} or Model
            The scoring model; ``"mlp"`` has one layer of 10 sigmoid units.
        engine : {"numpy", "torch", "jax"}
            Array engine; a :class:`TorchModule` always uses torch. With ``max_gap`` numpy or torch, as the problem is
            made anew, and would be compiled, at every point.
        device : str
            Where torch or JAX computes: "cpu", "cuda", "cuda:1", "gpu", "mps".
        dtype : {"float64", "float32"}, optional
            Precision; float64 by default, and float32 for a network with ``max_gap``.

        Raises
        ------
        InvalidInput, DataError
            Whatever cannot be used, named with the remedy.
        """
        resolved = resolve_metric(metric)
        kappa, max_gap = resolved_bound(kappa, max_gap, c1=c1, c2=c2, default="kappa")
        if max_gap is None and objective is not None:
            raise mm.InvalidInput("objective", objective, "needs max_gap; without one it is the quadratic AUC loss.")
        _check_alpha(alpha, max_gap)
        columns = FileColumns.of(
            label=label,
            positive=positive,
            sensitive=sensitive,
            protected=protected,
            keep_sensitive=keep_sensitive,
            ignore=ignore,
            unknown_category=unknown_category,
        )
        check_folder(data_dir)
        others = {name: part for name, part in (("validation", validation), ("test", test)) if part is not None}
        if too_large(data) and data not in DATASETS:
            if others:
                name, part = next(iter(others.items()))
                remedy = (
                    "goes with rows that are read at once, and data is read in pieces: leave it out, so that a part "
                )
                raise mm.InvalidInput(name, part, remedy + "of data is held out, or let more memory be used.")
            if max_gap is not None:
                remedy = "looks at all scores at once, and these rows are read in pieces: use kappa, or fit the "
                raise mm.InvalidInput("max_gap", max_gap, remedy + "data set with FairAUCClassifier.")
            kind: dict[str, Any] = {
                "engine": self._model(model, 1, engine)[1],
                "device": device,
                "dtype": dtype or "float64",
            }
            large = self._large(data, columns, test_fraction, standardize, seed, kind)
            scorer, _ = self._model(model, large.means.shape[1], engine)
            problem = large_problem(large, resolved, kappa, c1=c1, c2=c2, radius=radius, model=scorer, seed=seed)
            return problem if mm.distributed.current() is None else mm.distributed.distribute(problem)
        dataset = self.dataset(data, data_dir, columns, test_fraction, standardize, seed, others)
        scorer, engine = self._model(model, dataset.train.features.shape[1], engine)
        if max_gap is not None:
            loss = named_objective("auc" if objective is None else objective, c1, c2)
            common: dict[str, Any] = {"metric": resolved, "max_gap": max_gap, "objective": loss, "seed": seed}
            linear = isinstance(scorer, mm.Linear)
            if alpha == "auto" and not linear:
                raise mm.InvalidInput("alpha", alpha, "is for linear models; give a network a number.")
            common["ridge" if linear else "decay"] = _ridge(alpha, dataset, seed)
            target = Target(**common, model=scorer, radius=radius)
            if engine == "jax":
                remedy = (
                    'compiles a problem once, and with max_gap it is made anew at every point: use "numpy" or "torch".'
                )
                raise mm.InvalidInput("engine", engine, remedy)
            own = None if engine == "numpy" else engine  # a network without gradients of its own needs torch
            return build_target_problem(dataset.train, target, dataset=dataset, engine=own, dtype=dtype, device=device)
        kind = {"engine": engine, "device": device, "dtype": dtype or "float64"}
        return build_problem(dataset, resolved, kappa, c1=c1, c2=c2, radius=radius, model=scorer, seed=seed, **kind)

    def _large(
        self,
        data: Any,
        columns: FileColumns,
        test_fraction: float | None,
        standardize: bool | None,
        seed: int,
        kind: dict[str, Any],
    ) -> LargeDataset:
        check_unknown_category(columns, {})
        processes = mm.distributed.current()
        shared: dict[str, Any] = {}
        if processes is not None:
            shared = {"exchange": processes.exchange, "part": (processes.rank, processes.count)}
        return load_large(
            data,
            **shared,
            columns=columns,
            test_fraction=0.3 if test_fraction is None else test_fraction,
            standardize=standardize is not False,
            seed=seed,
            **kind,
        )

    def dataset(
        self,
        data: Any,
        data_dir: Any,
        columns: FileColumns,
        test_fraction: float | None,
        standardize: bool | None,
        seed: int,
        others: Mapping[str, Any] | None = None,
    ) -> Dataset:
        """Return the data set of a name, a file, rows or a data set; arguments are those of :meth:`load`.

        ``others`` are the sources of other parts than the training rows, by name.
        """
        check_parts(data, others or {}, test_fraction)
        if isinstance(data, Dataset):
            return data
        if isinstance(data, LabelledData):
            return self._split(data, test_fraction, standardize, seed)
        if isinstance(data, str) and (data in DATASETS or not looks_like_file(data)):
            given = columns.given()
            if test_fraction is not None:
                given["test_fraction"] = test_fraction
            if data in DATASETS and given:
                name, value = next(iter(given.items()))
                raise mm.InvalidInput(
                    name, value, f"data set {data!r} fixes this itself; leave it out, or give a file."
                )
            return load_dataset(data, data_dir=data_dir, seed=seed, standardize=standardize)
        rows, parts = rows_of_files(data, others or {}, columns)
        if parts:
            return dataset_of_parts(rows, **parts, standardize=standardize is not False)
        return self._split(rows, test_fraction, standardize, seed)

    @staticmethod
    def _split(data: LabelledData, test_fraction: float | None, standardize: bool | None, seed: int) -> Dataset:
        share = 0.3 if test_fraction is None else test_fraction
        return dataset_from(data, test_fraction=share, standardize=standardize is not False, seed=seed)

    @staticmethod
    def _model(model: Any, features: int, engine: str) -> tuple[mm.Model, str]:
        if isinstance(model, mm.Model):
            return model, "torch" if isinstance(model, mm.TorchModule) else engine
        if model == "linear":
            return mm.Linear(features), engine
        if model == "mlp":
            return mm.mlp(features), engine
        raise mm.UnknownName("model", str(model), ("linear", "mlp"))

    def evaluate(self, problem: mm.MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.ProblemPlugin.evaluate`: losses from group means and variances of the scores.

        Returned are ``objective``; ``values`` (the two surrogate sums :math:`f_1, f_2`, or with ``max_gap`` the true
        gap of both sides); ``train``, ``test`` (``validation``) with ``auc``, ``auc_gap`` and their 95% intervals.
        """
        point, dataset = solution_point(problem, x, Details), problem.details.dataset
        return (large_evaluation if dataset is not None and dataset.streamed else evaluation)(problem, point)

    def enclosed(self, problem: mm.MinMaxProblem, x: Any) -> Sequence[tuple[Fraction, Fraction]] | None:
        """See :meth:`minmaxcon.registry.Encloses.enclosed`: with ``max_gap``, from counts of pairs."""
        return enclosed_gap(problem, x)

    def references(self, problem: mm.MinMaxProblem) -> Mapping[str, mm.MinMaxProblem]:
        """See :meth:`minmaxcon.registry.Compares.references`: with ``max_gap``, the same problem without a target."""
        if problem.details.max_gap is None:
            return {}
        return {"without_target": without_target(problem)}

    def compared(self, found: Mapping[str, Any], references: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.registry.Compares.compared`: ``train`` gets ``without_target``, which has the price."""
        return against_free(found, references["without_target"]) if references else found

    def settings(self, problem: mm.MinMaxProblem) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.ProblemPlugin.settings`: the bound, and the objective that goes with ``max_gap``."""
        details: Details = problem.details
        bounds = {"kappa": details.kappa, "max_gap": details.max_gap}
        found = {name: None if bound is None else np.asarray(bound).tolist() for name, bound in bounds.items()}
        chosen = {"alpha": details.alpha} if details.alpha > 0 else {}
        return {**found, **chosen, "objective": None if details.max_gap is None else details.objective}

    def scores(self, problem: mm.MinMaxProblem, x: Any, features: Any) -> Any:
        """Return the scores (n,) of rows in the units in which the model was trained."""
        return scores_of(problem, solution_point(problem, x, Details), features)

    def export(self, problem: mm.MinMaxProblem, x: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """See :meth:`minmaxcon.registry.SavesModels.export`: parameters in raw feature units, scaling folded in.

        ``calibration`` in the description is Platt's, by the training rows: the logarithm of the slope and the
        intercept of the line from scores to log-odds; None where these rows are not in memory.
        """
        instance("problem", getattr(problem, "details", problem), Details, "must be a problem of fair_auc.")
        dataset, metric, size = problem.details.dataset, problem.details.metric, problem.details.model.dimension
        remedy = f"must be a point of the problem, or the {size} parameters of its model, all finite."
        x = finite_array("x", x, remedy)
        if x.ndim != 1 or x.size < size:
            raise mm.InvalidInput("x", x, remedy)
        kind, arrays = model_arrays(problem.details.model, x, dataset.standardizer)
        encoding = dataset.train.encoding
        description = {
            "problem": self.name,
            "model": kind,
            "features": list(dataset.train.feature_names),
            "encoding": None if encoding is None else encoding.as_dict(),
            "label_values": list(dataset.train.label_values),
            "group_values": list(dataset.train.group_values),
            "metric": metric.name if METRICS.get(metric.name) == metric else None,
            "calibration": None if dataset.streamed else _calibration(problem, x),
        }
        return arrays, description

    def predict(
        self,
        arrays: Mapping[str, Any],
        description: Mapping[str, Any],
        data: Any,
        *,
        unknown_category: UnknownCategory = "refuse",
    ) -> Any:
        """See :meth:`minmaxcon.registry.SavesModels.predict`: higher scores mean the positive label.

        Parameters
        ----------
        arrays, description : mapping
            What :meth:`export` returned.
        data : path or data frame
            The rows.
        unknown_category : {"refuse", "zero"}
            How a category that is not in the training data is treated: it is an error, or its row has 0 in all
            features of this column; a note counts such rows.

        Raises
        ------
        InvalidInput, DataError, Unsupported
            Whatever cannot be used, named with the remedy.
        """
        kind = mapping("description", description, _DESCRIPTION).get("model")
        if not isinstance(kind, str):
            raise mm.InvalidInput("model", kind, "the description names no kind of model; solve again.")
        if description.get("encoding") is None:
            raise mm.Unsupported("the model was trained on data at hand, whose columns have no names to be found by.")
        features = encoding_from_dict(description["encoding"]).encode(data, unknown_category)
        return score_rows(kind, arrays, features)

    def probabilities(self, description: Mapping[str, Any], scores: Any) -> Any:
        """See :meth:`minmaxcon.registry.GivesProbabilities.probabilities`: those of the positive label.

        Raises
        ------
        InvalidInput
            The model has no calibration, or what it has is none; or scores are no numbers.
        """
        found = mapping("description", description, _DESCRIPTION).get("calibration")
        if found is None:
            reason = "an earlier version saved the model, or its training rows were streamed"
            raise mm.InvalidInput("probabilities", True, f"the model has no calibration: {reason}; leave it out.")
        if not isinstance(found, Mapping):
            raise mm.InvalidInput("calibration", found, "is no calibration; solve again, or copy the model anew.")
        remedy = "is out of range; solve again, or copy the model anew."
        slope = number("calibration.log_slope", found.get("log_slope"), remedy, least=-700.0, most=700.0)
        intercept = number("calibration.intercept", found.get("intercept"), remedy)
        given = finite_array("scores", scores, "must be finite numbers, one for each row.")
        return LogOdds(math.exp(slope), intercept).probability(given)

    def measure_scores(
        self,
        description: Mapping[str, Any],
        scores: Any,
        data: Any,
        /,
        *,
        label: str | None = None,
        positive: str | None = None,
        sensitive: str | None = None,
        protected: str | None = None,
        metric: str | None = None,
        confidence: float = 0.95,
        missing: Literal["refuse", "drop"] = "refuse",
    ) -> Measured:
        """See :meth:`minmaxcon.registry.MeasuresScores.measure_scores`: AUC, signed gap, and rows of each cell.

        Parameters
        ----------
        description : mapping
            What :meth:`export` returned.
        scores : array_like (n,)
            Scores of the rows.
        data : path or data frame
            The rows.
        label : str, optional
            Column of the label: the scores are measured instead of printed. A LIBSVM file has it first on each line.
        positive : str, optional
            The positive value of the label, where it is called otherwise than in the training data.
        sensitive : str, optional
            Column of the sensitive attribute; without it only the AUC is measured. For LIBSVM the index of a feature.
        protected : str, optional
            The protected value of the sensitive column, against all others; by default as in training.
        metric : str, optional
            The fairness metric; by default that of training.
        confidence : float
            Confidence of all intervals, in (0, 1).
        missing : {"refuse", "drop"}
            How a row without label or group is treated: it is an error, or it is scored and not measured; a note counts
            such rows.

        Raises
        ------
        InvalidInput, DataError
            Whatever cannot be used, named with the remedy; such as a label or a group that training did not have.
        """
        return measure_new_rows(
            description,
            scores,
            data,
            label=label,
            positive=positive,
            sensitive=sensitive,
            protected=protected,
            metric=metric,
            confidence=confidence,
            missing=missing,
        )

    def notes(self, problem: mm.MinMaxProblem, measured: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[str]]:
        """See :meth:`minmaxcon.ProblemPlugin.notes`: surrogate against true gap, and what was done to the data."""
        dataset = problem.details.dataset
        rows, own = dataset.train, dataset.name not in DATASETS
        (negative, positive), (others, protected) = rows.label_values, rows.group_values
        meaning = (
            f"Label: {positive!r} is positive, {negative!r} negative. Protected: {protected!r}, against {others!r}."
        )
        told = cautions if problem.details.max_gap is None else target_cautions
        return {
            "Please note": told(problem.details.metric, measured),
            "Data": [*([meaning] if own else []), *dataset.notes],
        }

    def choices(self) -> Mapping[str, Mapping[str, str]]:
        """See :meth:`minmaxcon.ProblemPlugin.choices`."""
        return {
            "metric": {name: metric.description for name, metric in METRICS.items()},
            "objective": {
                "auc": "one minus the AUC itself; like the others it goes with max_gap",
                "quadratic_auc": "quadratic pairwise surrogate of the AUC, as with kappa",
                "logistic": "logistic loss of the labels",
            },
            "data": {name: info.description for name, info in DATASETS.items()},
        }

    def datasets(self, data_dir: Any = None) -> Sequence[Mapping[str, Any]]:
        """See :meth:`minmaxcon.registry.BringsData.datasets`."""
        shown = ("name", "description", "source", "licence")
        return [
            {**{name: getattr(info, name) for name in shown}, "missing": missing_files(info.name, data_dir)}
            for info in DATASETS.values()
        ]

    def download(self, name: str, data_dir: Any = None) -> tuple[Sequence[Any], Sequence[str]]:
        """See :meth:`minmaxcon.registry.BringsData.download`; the folder is named by ``data_dir`` or MINMAXCON_DATA."""
        folder = data_dir or os.environ.get(VARIABLE) or ""
        if not folder and name in DOWNLOADS:
            raise mm.InvalidInput("data_dir", data_dir, f"say where the files shall go: --data-dir DIR, or {VARIABLE}.")
        return download(name, folder)


def _check_alpha(alpha: Any, max_gap: Any) -> None:
    if alpha is not None and max_gap is None:
        raise mm.InvalidInput("alpha", alpha, "needs max_gap; without one there is no penalty.")
    if not (alpha is None or alpha == "auto"):
        try:
            number("alpha", float(alpha), "", least=0.0)
        except (TypeError, ValueError):
            raise mm.InvalidInput("alpha", alpha, 'must be a number of at least 0, or "auto".') from None


def _ridge(alpha: Any, dataset: Dataset, seed: int) -> float:
    """Return the variance of the noise that a strength, or the one that is chosen, takes features to have."""
    if alpha is None:
        return 0.0
    rows = dataset.train
    if alpha != "auto":
        return float(alpha) / len(rows)
    from .estimator.shrinkage import chosen_shrinkage

    found = chosen_shrinkage(rows.features, rows.label > 0, None, float(len(rows)), seed)
    return 1.0 / len(rows) if found is None else found.noise


plugin = FairAUC()


def model_arrays(model: mm.Model, x: Any, standardizer: Any = None) -> tuple[str, dict[str, Any]]:
    """Return the kind of a model and its float64 arrays, in raw feature units; raises Unsupported for other models.

    ``"linear"`` has the array ``weight`` (p,): scores are right up to a constant, which no AUC sees. ``"mlp"`` has
    ``hidden_weight`` (hidden, p), ``hidden_bias`` and ``output_weight`` (hidden,). The model's parameters come first in
    x (d,); the scaling of a standardizer is folded in.
    """
    w = np.asarray(x, dtype=np.float64)[: model.dimension]
    if isinstance(model, mm.Linear):
        return "linear", {"weight": w if standardizer is None else np.asarray(standardizer.fold(w)[0])}
    if isinstance(model, mm.MLP):
        inner, offset, outer = model.layers(w)
        if standardizer is not None:
            inner, shift = standardizer.fold(inner)
            offset = offset + shift
        return "mlp", {"hidden_weight": inner, "hidden_bias": offset, "output_weight": outer}
    raise mm.Unsupported("linear models and mm.MLP are saved; keep the solution's x for another network.")


def _calibration(problem: mm.MinMaxProblem, x: Any) -> dict[str, float]:
    """Return the line from the scores of the saved model to log-odds."""
    model, dataset = problem.details.model, problem.details.dataset
    scores = scores_of(problem, x, dataset.train.features)
    if isinstance(model, mm.Linear) and dataset.standardizer is not None:  # the saved model has no constant
        scores = scores - dataset.standardizer.fold(np.asarray(x, dtype=np.float64)[: model.dimension])[1]
    line = LogOdds.fit(scores, dataset.train.label > 0)
    return {"log_slope": math.log(line.slope), "intercept": line.intercept}


def score_rows(kind: str, arrays: Mapping[str, Any], features: Any) -> Any:
    """Return the scores (n,) of raw rows (n, p), dense or CSR; see :func:`model_arrays`.

    Raises Unsupported where a later version saved the model, and this one does not know its kind; InvalidInput where
    its arrays are not those of such a model.
    """
    from minmaxcon.results import checked_arrays

    width = features.shape[1]
    if kind == "linear":
        return np.asarray(features @ checked_arrays(arrays, {"weight": (width,)})["weight"]).ravel()
    if kind != "mlp":
        raise mm.Unsupported(f"the model is of a kind that this version does not know: {kind!r:.60}.")
    hidden = max(1, int(np.size(arrays.get("output_weight", ()))))
    shapes = {"hidden_weight": (hidden, width), "hidden_bias": (hidden,), "output_weight": (hidden,)}
    found = checked_arrays(arrays, shapes)
    return mm.mlp(width, hidden).predict(np.concatenate([found[name].ravel() for name in shapes]), features)

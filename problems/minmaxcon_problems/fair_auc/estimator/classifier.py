"""The scikit-learn estimator: a classifier with the best AUC whose fairness gap is at most what was asked."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import minmaxcon as mm
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.metrics import AUCEstimate
from minmaxcon.results import check_file, write_file
from minmaxcon_problems.fair_auc.calibration import GroupCalibration, sigmoid
from minmaxcon_problems.fair_auc.datasets import stratified_indices
from minmaxcon_problems.fair_auc.measured import Compared, Measured
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, resolve_metrics
from minmaxcon_problems.fair_auc.target.fit import LeftOut

from .asked import asked_of
from .dataset import fit_dataset, is_partitioned
from .fitted import Fitted
from .groups import signs_of_values, with_groups
from .incremental import Incremental
from .inputs import (
    SENSITIVE,
    as_it_was_if_refused,
    one_row,
    only,
    require_aligned,
    require_numbers,
    seed_of,
)
from .measures import LabelledScores, scores_of_classifier
from .report import Evidence, report_page, summary_html
from .rows import given_rows, training_rows, validation_rows
from .shrinkage import Shrinkage
from .training import fit_rows, fit_stream

__all__ = ["FairAUCClassifier"]


class FairAUCClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Binary classifier of the best AUC whose AUC-based fairness gap is at most ``max_gap``.

    .. math:: \max_h AUC(h; D_+, D_-) \ \text{s.t.}\  |AUC(h; G_1, G_1') - AUC(h; G_2, G_2')| \le \mathtt{max\_gap}

    X is what the model sees; the sensitive attribute is needed for fitting only, and is read by the model only with
    ``use_group``, or if X has it.

    Parameters
    ----------
    metric : str, four subsets or list of str
        The fairness metric: ``"group"``, ``"inter_group"``, ``"intra_group"``, ``"positive_equality_gap"``,
        ``"negative_equality_gap"``, ``"bpsn_bnsp"``, or the subsets :math:`G_1, G_1', G_2, G_2'`. Of a list of names
        the largest gap is bound.
    max_gap : float or list of float, optional
        Largest true gap, in [0, 1], on the training data, or on rows held out: see ``validation_fraction``. 0.02 by
        default, where ``kappa`` is not given. Of several limits, solved at once, the model is the one of the smallest
        limit whose AUC is within one standard error of the best among those that are met; ``path_`` has all.
    kappa : float, optional
        In the place of ``max_gap``, the bound :math:`1 + \kappa` of the paper's quadratic surrogate, which certifies
        optimality but does not say what the true gap will be.
    model : {"linear", "mlp"}, torch.nn.Module, callable or Model
        The scoring model. ``"mlp"`` has one layer of 10 sigmoid units; a callable is called with the number of features
        and returns a ``torch.nn.Module`` that maps (n, d) to n scores. Networks make sparse X dense.
    objective : {"auc", "quadratic_auc", "logistic"}, optional
        What is best subject to ``max_gap``: the AUC itself, in a smooth form, by default; its quadratic surrogate; or
        the logistic loss. With ``kappa`` it is the quadratic surrogate, and nothing can be chosen.
    alpha : float, optional
        For a linear model the strength of the ridge penalty, in the unit of scikit-learn's ``Ridge`` on standardised
        features: ``alpha`` says that each feature is known up to noise of variance ``alpha`` over the number of rows.
        By default it is chosen: of a path of strengths the largest whose AUC on new rows, estimated in closed form, is
        within one standard error of the best, so that gaps on new rows become smaller. The estimate assumes features
        without extreme values: transform those that are heavily skewed or have outliers, or give 0. With more rows
        the noise tends to 0; of uncorrelated features, whose ranking no strength changes, it does not. For a network
        alpha is the weight decay: alpha / (2 n) times the squared norm of its parameters is added to the objective, as
        scikit-learn's networks have it; none by default.
    monotonic_cst : array_like (d,) of int, or mapping of str to int, optional
        For a linear model, as scikit-learn's trees have it: 1 where the chance of the positive label may not fall as
        the feature grows, -1 where it may not rise, 0 where it may do both. By name, features that are left out are
        free. Coefficients for the positive label have these signs exactly, also those of the model without a target.
    method : {"following", "bounds"}
        How ``max_gap`` is reached: constraints that follow the true AUC, or one bound per side of the quadratic
        surrogate.
    demand : {"value", "upper", "new_rows"}
        What is to meet ``max_gap``: the gap on training or held-out rows; the upper end of its confidence interval,
        which needs held-out rows; or the gap that new rows will have, as far as twice five folds of rows left out tell,
        of which each combination of label and group must have 25.
    validation_fraction : float, optional
        Share of the rows, of every label and group alike, that is held out: the training target is tightened until the
        held-out gap meets ``max_gap``.
    n_init : int
        For networks, how many random starts are trained from, which share the time limit; of the models that meet the
        target the one of the best AUC is kept. Where there was no time for all, ``reason_`` says how many were made,
        and the status is at best ``BUDGET``.
    early_stopping : bool
        For networks: whether the model is, of those that training passes with a training gap within the goal, the one
        of the best AUC on the held-out rows, which ``validation_fraction``, or ``X_val`` of :meth:`fit`, gives.
    positive : object, optional
        The positive label; the later of the two in sorted order by default.
    protected : object, optional
        The protected value of the sensitive features, against all others. By default, of two values, the one with
        fewer rows; of more, each one ``against`` others, and the largest gap is bound.
    against : {"rest", "each_other"}
        What each of more than two groups is compared with: all other rows; or every other group, on the rows of the two
        alone, which bounds the gap between any two groups, and costs some AUC and one bound for each two of them.
    min_rows_per_cell : int, optional
        Of more than two groups, those with fewer rows of either label are left out of the bound, named by a warning and
        ``reason_``; they still count among the rest, with which others are compared. By default none is left out.
    unknown : {"refuse", "own_group", "drop"}
        What a missing value of the sensitive features is: an error, the group "unknown", or a row to leave out.
    use_group : bool, "shift" or "coefficients"
        Whether the model may read the group: with True, or "shift", each group has a shift of its own, with
        "coefficients" coefficients of its own, too, trained together under the target. ``predict`` and the like then
        take ``sensitive_features``. Whether that is lawful is yours to know.
    calibration : {"all", "by_group"}
        Whether probabilities come from one line for all rows, or from one for each group, which needs ``use_group``.
        Probabilities by group rank rows of different groups in another way than ``decision_function``, whose gap it is
        that meets ``max_gap``.
    standardize : bool
        Whether features are standardised for training: centred and scaled, sparse ones scaled only. ``coef_`` is in raw
        units all the same.
    radius : float
        Radius of the ball of parameters, in the units in which the model is trained.
    score_bound : float, optional
        For a module, an upper bound on its absolute scores, 100 by default.
    solver : Solver, optional
        For ``kappa``; by default what :func:`minmaxcon.solve` chooses for a linear model, and ``IQRC()`` for others.
    max_iter : int, optional
        Most outer steps of a solve under ``max_gap``, 200 by default. A fit that uses them up may fall short of the
        best AUC, with the status ``BUDGET``, or of its target, with ``UNFINISHED``, of which a ``ConvergenceWarning``
        tells.
    time_limit : float, optional
        Seconds that a fit may take, after which it returns the best model so far; where that does not meet the target
        the status is ``UNFINISHED``. So it is with ``demand="new_rows"`` for a limit that was not begun, which takes
        the model of another one. A time limit that is not reached changes nothing. The clock is looked at between
        steps: one that has begun is finished, and the models are measured.
    max_rows_per_cell : int
        Rows of each combination of label and group that :meth:`partial_fit` keeps.
    random_state : int, RandomState or None
        Seed of all random choices; an int gives the same model each time.

    Attributes
    ----------
    classes_ : ndarray (2,)
        The labels, sorted. ``decision_function`` is positive for the second one.
    n_features_in_, feature_names_in_
        As scikit-learn has them.
    positive_, negative_ : object
        The labels that were meant.
    protected_, reference_ : object
        The protected value of the sensitive features, and what it was compared with: the other value, or "not ..."
        where there are several. None without sensitive features, or where each group is compared.
    groups_ : tuple
        All values of the sensitive features.
    gap_, auc_ : AUCEstimate
        True gap and AUC with intervals, on the held-out part where there is one, else on the training data.
    status_, reason_
        How training ended, and the evidence.
    price_ : float
        AUC of the best model known, with a limit or without, less that of this one, on the same rows: at least 0.
    target_ : float or None
        Gap that training was held to.
    max_gap_ : float or None
        The limit: that of several which was chosen.
    path_ : tuple of FairAUCClassifier
        The fitted models of all limits, in the order of ``max_gap``.
    calibration_ : tuple of GroupCalibration
        By how much probabilities are off in each group.
    left_out_ : LeftOut or None
        With ``demand="new_rows"``, gap and AUC on rows left out of training, averaged over folds.
    alpha_ : float
        Strength of the ridge penalty.
    alpha_path_ : Shrinkage or None
        ``alphas`` and the estimates ``aucs`` of their AUC on new rows, where it was chosen from them.
    certificate_ : Certificate or None
        Bounds on the optimal value, with ``kappa``.
    coef_, intercept_ : ndarray (1, d), (1,)
        Of the decision function, the log-odds of ``classes_[1]``, for a linear model, in raw units; with ``use_group``
        those of the groups follow, as ``feature_names_`` has them.
    solution_, trace_, n_iter_
        The solver's course.

    Notes
    -----
    ``predict_proba`` is calibrated by Platt's method, on the held-out part where there is one, else on the training
    rows (which makes a flexible network look more certain than it is). The decision function is the log-odds, so that
    ``predict`` returns the second class where its probability is above one half; scikit-learn's
    ``TunedThresholdClassifierCV`` chooses another threshold. Since the calibration rises strictly, probabilities have
    the gap and AUC of the scores.

    With scikit-learn's metadata routing, ``fit`` and ``partial_fit`` request ``sensitive_features`` and
    ``sample_weight`` from the start.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon_problems.fair_auc import FairAUCClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(400, 3)), np.repeat(["a", "b"], 200)
    >>> y = X[:, 0] + (group == "a") + rng.normal(size=400) > 0
    >>> clf = FairAUCClassifier("group", max_gap=0.05).fit(X, y, sensitive_features=group)
    >>> bool(clf.gap_.value <= 0.05)
    True
    """

    _fitted: Fitted
    _stream: Incremental | None

    # How scikit-learn lets a class declare what it asks for, so that users need not call set_fit_request.
    __metadata_request__fit: Mapping[str, bool] = {SENSITIVE: True, "sample_weight": True}
    __metadata_request__partial_fit: Mapping[str, bool] = {SENSITIVE: True, "sample_weight": True}
    __metadata_request__decision_function: Mapping[str, bool] = {SENSITIVE: True}
    __metadata_request__predict: Mapping[str, bool] = {SENSITIVE: True}
    __metadata_request__predict_proba: Mapping[str, bool] = {SENSITIVE: True}

    def __init__(
        self,
        metric: str | FairnessMetric | Any = "inter_group",
        *,
        max_gap: float | None = None,
        kappa: float | None = None,
        model: Any = "linear",
        objective: Literal["auc", "quadratic_auc", "logistic"] | None = None,
        alpha: float | None = None,
        monotonic_cst: Any = None,
        method: Literal["following", "bounds"] = "following",
        demand: Literal["value", "upper", "new_rows"] = "value",
        validation_fraction: float | None = None,
        n_init: int = 1,
        early_stopping: bool = False,
        positive: Any = None,
        protected: Any = None,
        against: Literal["rest", "each_other"] = "rest",
        min_rows_per_cell: int | None = None,
        unknown: Literal["refuse", "own_group", "drop"] = "refuse",
        use_group: bool | Literal["shift", "coefficients"] = False,
        calibration: Literal["all", "by_group"] = "all",
        standardize: bool = True,
        radius: float = 10.0,
        score_bound: float | None = None,
        solver: mm.Solver | None = None,
        max_iter: int | None = None,
        time_limit: float | None = None,
        max_rows_per_cell: int = 4096,
        random_state: Any = None,
    ) -> None:
        self.metric = metric
        self.max_gap = max_gap
        self.kappa = kappa
        self.model = model
        self.objective = objective
        self.alpha = alpha
        self.monotonic_cst = monotonic_cst
        self.method = method
        self.demand = demand
        self.validation_fraction = validation_fraction
        self.n_init = n_init
        self.early_stopping = early_stopping
        self.positive = positive
        self.protected = protected
        self.against = against
        self.min_rows_per_cell = min_rows_per_cell
        self.unknown = unknown
        self.use_group = use_group
        self.calibration = calibration
        self.standardize = standardize
        self.radius = radius
        self.score_bound = score_bound
        self.solver = solver
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.max_rows_per_cell = max_rows_per_cell
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit the model to rows at hand; what :meth:`partial_fit` has remembered is dropped.

        Parameters
        ----------
        X : array_like, data frame or CSR (n, d), or data set
            Features, finite numbers. With the name of a column as ``y``, a data set of any size as
            :class:`minmaxcon.tables.TableBlocks` takes it (path, folder, address, data set of pyarrow, list of frames,
            function that returns an iterator of frames), or a Dask DataFrame, whose other columns are the features: the
            model is fitted to a uniform sample of ``max_rows_per_cell`` rows of each label and group, as by
            :meth:`partial_fit`, and ``gap_`` and ``auc_`` are measured on all rows; where these miss the target, the
            sample is held to a smaller gap.
        y : array_like (n,) or str
            Labels, any two values; or the name of their column.
        sensitive_features : array_like (n,) or str
            Group of each row, any values, or the name of its column (two values, or ``protected``); of several columns
            the intersections are the groups, such as "f & old". A missing one is what ``unknown`` says; pandas indices
            that differ are an error. Without them there is no constraint, of which a warning tells, and ``gap_`` is
            None.
        sample_weight : array_like (n,) or str, optional
            How many rows each row stands for, at least 0; a row of weight 0 is left out. Objective, gap and all
            measures are weighted. For a data set the name of their column.
        X_val, y_val, sensitive_features_val, sample_weight_val
            Rows of your own that are to meet ``max_gap``, in the place of a part of the training rows.

        Raises
        ------
        InvalidInput, DataError, ValueError
            A parameter or the data cannot be used; the message names the remedy.

        Warns
        -----
        ConvergenceWarning
            The target was not met, or the model gives all rows one score.
        UserWarning
            No sensitive features; groups that ``min_rows_per_cell`` leaves out, or that differ in case or spaces only;
            probabilities that are off in a group by more than 0.05 and chance.
        """
        if isinstance(y, str):
            if X_val is not None:
                raise InvalidInput("X_val", "given", "is for rows at hand; leave it out for a data set.")
            with as_it_was_if_refused(self):
                fit_dataset(self, X, y, sensitive_features, sample_weight)
            return self
        if is_partitioned(X):
            need = "of a Dask DataFrame is the name of a column, as sensitive_features is: fit(frame, 'label', ...)."
            raise InvalidInput("y", type(y).__name__, need)
        with as_it_was_if_refused(self):
            own = X_val is not None
            _require_own_rows(self, own, (y_val, sensitive_features_val, sample_weight_val))
            asked = asked_of(self, seed_of(self.random_state), held_out=own)
            given = given_rows(self, X, y, sensitive_features, sample_weight, reset=True)
            rows, classes = training_rows(self, given)
            constrained = sensitive_features is not None
            if not constrained:
                _warn_unconstrained()
            weight, total, share = given.row_weight, given.total, self.validation_fraction
            validation, held_out = None, None
            if own:
                judged = given_rows(
                    self, X_val, y_val, sensitive_features_val, sample_weight_val, reset=False, suffix="_val"
                )
                validation, held_out = validation_rows(judged, rows), judged.row_weight
            elif share is not None:
                parts = stratified_indices(rows, (1.0 - share, share), asked.target.seed)
                total *= len(parts[0]) / len(rows) if weight is None else float(weight[parts[0]].sum() / weight.sum())
                rows, validation = (
                    replace(rows.select(part), name=name)
                    for part, name in zip(parts, ("the training part", "the held-out part"), strict=True)
                )
                weight, held_out = (None, None) if weight is None else (weight[part] for part in parts)
            self._fitted = fit_rows(
                self,
                asked,
                rows,
                validation,
                classes,
                constrained=constrained,
                groups=rows.groups,
                total=total,
                row_weight=weight,
                validation_weight=held_out,
            )
            self._stream = None
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        r"""Take in more rows: one or many, in any order of labels and groups.

        Rows are remembered, not fitted: for each combination of label and group their exact number N and a uniform
        sample of at most ``max_rows_per_cell``, in memory that does not grow with the stream. The model is solved when
        it is next asked for (by ``predict``, ``coef_``, ``gap_``, ...), from the sample, a row of which stands for
        N / (rows kept) rows: probabilities of groups and labels are those of all rows seen, without bias. How rows are
        divided into calls makes no difference, nor does when the model was asked for before: it is solved afresh.

        Before every subset of the metric has been seen, asking raises ``NotFittedError``, which names what is missing.
        With ``validation_fraction`` the held-out part is drawn from the sample.
        Called after :meth:`fit`, it begins anew: the rows of :meth:`fit` were not remembered.

        Parameters
        ----------
        X : array_like, data frame or CSR (n, d)
            Features.
        y : array_like (n,)
            Labels.
        classes : array_like (2,), optional
            The two labels, to refuse others from the first row on; by default learned from the rows.
        sensitive_features : array_like (n,)
            Group of each row, of two values, or of more with ``protected``: in every call or in none.
        sample_weight : array_like (n,), optional
            How many rows each row stands for, at least 0, 1 by default.

        Raises
        ------
        InvalidInput, DataError, ValueError
            As in :meth:`fit`; a third label, a group too many, or features that differ from those of the first call.
            The block is then not taken in.
        """
        stream = vars(self).get("_stream")
        if (
            stream is not None
            and sample_weight is None
            and stream.declared(classes)
            and (row := one_row(X, self.n_features_in_)) is not None
            and stream.constrained is (sensitive_features is not None)
            and not hasattr(self, "feature_names_in_")
            and stream.add_row(row, only(y), only(sensitive_features))
        ):
            return self  # the general way costs several times as much for one row
        with as_it_was_if_refused(self):
            given = given_rows(self, X, y, sensitive_features, sample_weight, reset=stream is None)
            constrained = sensitive_features is not None
            if stream is None:
                seed = seed_of(self.random_state)
                asked_of(self, seed, rows_at_hand=False)
                if hasattr(self, "_fitted"):
                    warnings.warn("partial_fit begins anew: the rows of fit were not remembered.", stacklevel=2)
                if not constrained:
                    _warn_unconstrained()
                pairs = self.against == "each_other"
                stream = Incremental(constrained, self.protected, self.max_rows_per_cell, seed, each_other=pairs)
            elif stream.constrained is not constrained:
                raise DataError("partial_fit", f"give {SENSITIVE} in every call or in none, as in the calls before.")
            if classes is not None:
                stream.require_classes(classes)
            stream.add(given.features, given.labels, given.column, given.weight)
            self._stream = stream
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return not {"_fitted", "_stream"}.isdisjoint(vars(self))

    def _result(self) -> Fitted:
        stream = vars(self).get("_stream")
        if stream is not None and stream.fresh:
            self._fitted = fit_stream(self, stream)
            stream.fresh = False
        check_is_fitted(self)
        return self._fitted

    @property
    def classes_(self) -> Any:
        """The labels (2,), sorted."""
        return self._result().classes

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Return the log-odds (n,) of the second class.

        Parameters
        ----------
        X : array_like, data frame or CSR (n, d)
            Features.
        sensitive_features : array_like (n,), optional
            Groups, which a model fitted with ``use_group`` needs, and no other one takes.

        Raises
        ------
        NotFittedError
            Nothing was fitted, or ``partial_fit`` has not seen what the metric needs.
        ValueError
            X is not finite, or has other features than those fitted.
        """
        result = self._result()
        if isinstance(X, str):
            raise InvalidInput("X", X, "must hold the rows to be scored; read a data set block by block, as frames.")
        require_numbers(X)
        features = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if result.use_group:
            signs = signs_of_values(sensitive_features, features.shape[0], result.groups, result.compared)
            features = with_groups(features, signs, result.use_group)
        elif sensitive_features is not None:
            raise InvalidInput(SENSITIVE, "given", "the model does not read the group: leave them out.")
        return result.decision(features)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Return the class (n,) of each row: the second one where its probability is above one half.

        Parameters are those of :meth:`decision_function`.
        """
        decision = self._calibrated(X, sensitive_features)
        return self.classes_[(decision > 0).astype(np.int64)]

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Return the probabilities (n, 2) of the classes, by Platt's calibration, by group where that was asked for.

        Parameters are those of :meth:`decision_function`.
        """
        decision = self._calibrated(X, sensitive_features)
        return sigmoid(np.stack([-decision, decision], axis=1))

    def _calibrated(self, X: Any, sensitive_features: Any) -> Any:
        """Return the log-odds (n,) behind the probabilities of the second class."""
        decision, result = self.decision_function(X, sensitive_features=sensitive_features), self._result()
        if not result.by_group:
            return decision
        signs = signs_of_values(sensitive_features, len(decision), result.groups, result.compared)
        return result.log_odds_by_group(decision, signs)

    def measure(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        metric: Any = None,
        confidence: float = 0.95,
    ) -> Measured:
        """Measure AUC and fairness on rows, such as new ones, with positive label and protected group as fitted.

        Parameters
        ----------
        X : array_like, data frame or CSR (n, d)
            Features.
        y : array_like (n,)
            Labels, of those that were fitted.
        sensitive_features : array_like (n,), optional
            Groups, of those that were fitted; without them there is no gap.
        sample_weight : array_like (n,), optional
            Weights of the rows; a row of weight 0 is left out.
        metric : str, FairnessMetric or four subsets, optional
            The fairness metric; by default that of the fit.
        confidence : float
            Of all intervals, in (0, 1).

        Returns
        -------
        Measured
            ``auc``, ``gap``, ``signed_gap`` and ``favours``, which says in words of the metric which side is favoured;
            ``groups``, ``cells`` (rows of each label and group) and ``reasons``; ``str`` of it is a summary.

        Raises
        ------
        InvalidInput, DataError, ValueError
            Rows that cannot be used, or a label or group that was not fitted; the message names it.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X, group = rng.normal(size=(400, 3)), np.repeat(["a", "b"], 200)
        >>> y = X[:, 0] + (group == "a") + rng.normal(size=400) > 0
        >>> clf = FairAUCClassifier("group", max_gap=0.05).fit(X, y, sensitive_features=group)
        >>> found = clf.measure(X, y, sensitive_features=group)
        >>> found.gap.value == clf.gap_.value, sum(cell.rows for cell in found.cells)
        (True, 400)
        """
        rows = self._rows_to_measure(X, y, sensitive_features, sample_weight)
        chosen = resolve_metrics(self.metric if metric is None else metric)
        return rows.measured(self._scores(X, sensitive_features), chosen, confidence)

    def compare(
        self,
        other: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        metric: Any = None,
        confidence: float = 0.95,
    ) -> Compared:
        """Compare this model with another one on the same rows.

        Parameters
        ----------
        other : classifier or array_like (n,)
            Any fitted classifier of the same classes, or scores, higher for the positive label.
        X, y, sensitive_features, sample_weight, metric, confidence
            As for :meth:`measure`.

        Returns
        -------
        Compared
            ``auc`` and ``gap``: this model's less the other's, paired through the rows by DeLong's covariance, with
            intervals and p-values; ``signed_gaps`` by group; ``first`` and ``second``, either model measured.

        Raises
        ------
        InvalidInput, DataError, ValueError
            As for :meth:`measure`; another model of other classes, or one that gives no scores.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X, group = rng.normal(size=(800, 3)), np.repeat(["a", "b"], 400)
        >>> y = X[:, 0] + 2 * (group == "a") + rng.normal(size=800) > 0
        >>> fair, free = (
        ...     FairAUCClassifier("inter_group", max_gap=gap).fit(X, y, sensitive_features=group) for gap in (0.05, 1)
        ... )
        >>> found = fair.compare(free, X, y, sensitive_features=group)
        >>> bool(found.gap.value < 0), bool(found.gap.p_value < 0.05)
        (True, True)
        """
        rows = self._rows_to_measure(X, y, sensitive_features, sample_weight)
        chosen = resolve_metrics(self.metric if metric is None else metric)
        rival = scores_of_classifier(other, X, self.classes_.tolist(), self.positive_, sensitive_features)
        return rows.compared(self._scores(X, sensitive_features), rival, chosen, confidence)

    def report(
        self,
        path: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        rivals: Mapping[str, Any] | None = None,
        title: str = "Fairness report",
        rows_name: str = "rows of this report",
        overwrite: bool = False,
    ) -> None:
        """Write one self-contained HTML page for an auditor, which needs no network and runs no script.

        It tells data and cells, the metric in words, what was asked and reached with intervals, ROC curves and
        distributions of scores by group, calibration by group, price, certificate, coefficients in raw units,
        settings, versions and seed.

        Parameters
        ----------
        path : path
            The file, such as report.html.
        X, y, sensitive_features, sample_weight
            Rows to judge by, such as held-out ones; as for :meth:`measure`.
        rivals : mapping of str to classifier or array_like, optional
            Other models, such as fits with other targets, that are compared with this one: a table and a figure.
        title : str
            Heading of the page.
        rows_name : str
            What the rows are called.
        overwrite : bool
            Whether a file that exists may be replaced.

        Raises
        ------
        InvalidInput, DataError, ValueError
            As for :meth:`measure` and :meth:`compare`; the file exists, or cannot be written.
        """
        check_file(path, overwrite=overwrite)
        rows, result = self._rows_to_measure(X, y, sensitive_features, sample_weight), self._result()
        metric, scores = resolve_metrics(self.metric), self._scores(X, sensitive_features)
        label, groups = rows.signs()
        found = {
            name: rows.compared(
                scores,
                scores_of_classifier(model, X, self.classes_.tolist(), self.positive_, sensitive_features),
                metric,
                0.95,
            )
            for name, model in (rivals or {}).items()
        }
        kept = scores[rows.kept]
        evidence = Evidence(
            measured=rows.measured(scores, metric, 0.95),
            scores=kept,
            chance=sigmoid(kept),
            label=label,
            groups=groups,
            rivals=found,
            path=[
                (one.fit.max_gap or 0.0, rows.measured(model._scores(X, sensitive_features), metric, 0.95))
                for one, model in zip(result.path, self.path_ if result.path else (), strict=True)
            ],
        )
        linear = isinstance(result.fit.model, mm.Linear)
        # Those of the decision function mean the second class, the page the positive label throughout.
        weights = (result.direction * self.coef_[0]).tolist() if linear else []
        features = list(zip(result.feature_names, weights, strict=True)) if linear else []
        page = report_page(title, result, self.get_params(deep=False), features, evidence, rows_name)
        write_file(path, page.encode(), overwrite=overwrite)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Return how notebooks show the estimator: after a fit with its result."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        fitted = vars(self).get("_fitted")
        if fitted is not None and "text/html" in bundle:
            bundle["text/html"] += summary_html(fitted)
        return bundle

    def _scores(self, X: Any, sensitive_features: Any) -> Any:
        """Return scores (n,) that are higher for the positive label."""
        result = self._result()
        groups = sensitive_features if result.use_group else None
        return result.direction * self.decision_function(X, sensitive_features=groups)

    def _rows_to_measure(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> LabelledScores:
        result = self._result()
        require_aligned({"X": X, "y": y, SENSITIVE: sensitive_features, "sample_weight": sample_weight})
        known: dict[str, Any] = {"groups": result.groups} if result.constrained else {}
        if result.constrained and not result.several:
            known["group_values"] = result.group_values
        elif result.several:
            known["left_out"] = [value for value in result.groups if value not in result.compared]
            known["each_other"] = result.each_other
        return LabelledScores(
            y,
            sensitive_features,
            sample_weight,
            protected=self.protected,
            labels=result.labels,
            unknown=self.unknown,
            **known,
        )

    @property
    def positive_(self) -> Any:
        """The label that was meant by positive."""
        return self._result().labels[1]

    @property
    def negative_(self) -> Any:
        """The other label."""
        return self._result().labels[0]

    @property
    def protected_(self) -> Any:
        """The protected value of the sensitive features; None without them, or where each is compared with the rest."""
        result = self._result()
        return result.group_values[1] if result.constrained and not result.several else None

    @property
    def reference_(self) -> Any:
        """The other value, or "not ...", with which the protected group was compared; None without groups."""
        result = self._result()
        return result.group_values[0] if result.constrained and not result.several else None

    @property
    def groups_(self) -> tuple[Any, ...]:
        """All values of the sensitive features, in order of appearance."""
        return self._result().groups

    @property
    def coef_(self) -> Any:
        """Coefficients ``(1, n_features_in_)`` of the decision function in raw units, for a linear model.

        They are those of the log-odds of ``classes_[1]``, whichever label is positive.
        """
        return self._result().line()[0][None, :]

    @property
    def intercept_(self) -> Any:
        """Intercept (1,) of the decision function, for a linear model."""
        return np.array([self._result().line()[1]])

    @property
    def status_(self) -> mm.Status:
        """How training ended; its ``value`` is a sentence."""
        return self._result().fit.status

    @property
    def reason_(self) -> str:
        """The evidence behind the status, one sentence."""
        return self._result().fit.reason

    @property
    def gap_(self) -> AUCEstimate | None:
        """The true gap with its interval, on the data that the target is about; None without sensitive features."""
        result = self._result()
        return result.fit.gap if result.constrained else None

    @property
    def auc_(self) -> AUCEstimate:
        """The AUC with its interval, on the same rows as the gap."""
        return self._result().fit.auc

    @property
    def price_(self) -> float:
        """AUC of the best model known, with a limit or without, less that of this one, on the same rows: at least 0."""
        return self._result().fit.price

    @property
    def target_(self) -> float | None:
        """The gap that training was held to: ``max_gap``, or less where a held-out part is to meet it."""
        result = self._result()
        return result.fit.target if result.constrained else None

    @property
    def max_gap_(self) -> float | None:
        """The limit on the gap, that of several which was chosen; None with ``kappa`` or without groups."""
        result = self._result()
        return result.fit.max_gap if result.constrained else None

    @property
    def path_(self) -> tuple[FairAUCClassifier, ...]:
        """The fitted models of all limits, in the order of ``max_gap``."""
        result = self._result()
        if not result.path:
            return (self,)
        found = []
        for one in result.path:
            twin = copy.copy(self)
            twin.max_gap, twin._fitted, twin._stream = one.fit.max_gap, one, None
            found.append(twin)
        return tuple(found)

    @property
    def calibration_(self) -> tuple[GroupCalibration, ...]:
        """By how much probabilities are off in each group, on the rows that the target is about."""
        return self._result().calibration

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """Names of the features of ``coef_``, with those of the groups."""
        return self._result().feature_names

    @property
    def left_out_(self) -> LeftOut | None:
        """Gap and AUC on rows left out of training, with ``demand="new_rows"``; else None."""
        return self._result().left_out

    @property
    def alpha_(self) -> float:
        """The strength of the ridge penalty."""
        return self._result().alpha

    @property
    def alpha_path_(self) -> Shrinkage | None:
        """Strengths and the estimates of their AUC on new rows, where the strength was chosen; else None."""
        return self._result().alpha_path

    @property
    def certificate_(self) -> mm.Certificate | None:
        """Bounds on the optimal value of the surrogate problem, with ``kappa``; else None."""
        fit = self._result().fit
        return fit.solution.certificate if fit.target is None else None

    @property
    def trace_(self) -> Mapping[str, Any]:
        """The solver's course: columns of equal length."""
        return self._result().fit.solution.trace

    @property
    def solution_(self) -> mm.Solution:
        """The solver's solution, in the units in which the model was trained."""
        return self._result().fit.solution

    @property
    def n_iter_(self) -> int:
        """Outer iterations of the solver."""
        return max(1, len(next(iter(self.trace_.values()), ())))


def _require_own_rows(estimator: Any, own: bool, others: tuple[Any, ...]) -> None:
    """Refuse validation rows that are not whole, or given beside another way to hold rows out."""
    if own and others[0] is None:
        raise InvalidInput("y_val", None, "is needed with X_val: give the label of each row.")
    if not own and any(part is not None for part in others):
        raise InvalidInput("X_val", None, "is needed with y_val, sensitive_features_val and sample_weight_val.")
    if own and estimator.validation_fraction is not None:
        remedy = "holds out a part of the training rows, in the place of which X_val is given: leave one of them out."
        raise InvalidInput("validation_fraction", estimator.validation_fraction, remedy)


def _warn_unconstrained() -> None:
    message = "No sensitive_features were given: the model is fitted without a fairness constraint."
    warnings.warn(message, UserWarning, stacklevel=3)

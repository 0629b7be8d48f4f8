"""Predictions of a fitted classifier, and the attributes through which a user reads the fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

import minmaxcon as mm
from minmaxcon.metrics import AUCEstimate

from .fitted import Fitted

__all__ = ["FittedClassifier"]


class FittedClassifier:
    """Predictions and attributes of a fitted classifier; after ``partial_fit`` the first one asked for solves."""

    @abstractmethod
    def _result(self) -> Fitted:
        """Return the fit, solved if rows have arrived since.

        Raises
        ------
        NotFittedError
            There is none, or not enough has been seen for one.
        """

    @property
    def classes_(self) -> Any:
        """The labels (2,), sorted."""
        return self._result().classes

    def decision_function(self, X: Any) -> Any:
        """Return the log-odds (n,) of the second class.

        Raises
        ------
        NotFittedError
            Nothing was fitted, or ``partial_fit`` has not seen what the metric needs.
        ValueError
            X is not finite, or has other features than those fitted.
        """
        result = self._result()
        return result.decision(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False))

    def predict(self, X: Any) -> Any:
        """Return the class (n,) of each row: the second one where its probability is above one half."""
        decision = self.decision_function(X)
        return self.classes_[(decision > 0).astype(np.int64)]

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities (n, 2) of the classes, by Platt's calibration."""
        decision = self.decision_function(X)
        # exp(-ln(1 + exp(-t))) is the sigmoid of t without overflow
        return np.exp(-np.logaddexp(0.0, np.stack([decision, -decision], axis=1)))

    @property
    def coef_(self) -> Any:
        """Coefficients (1, n_features_in_) of the decision function in raw units, for a linear model."""
        return self._result().line()[0][None, :]

    @property
    def intercept_(self) -> Any:
        """Intercept (1,) of the decision function, for a linear model."""
        return np.array([self._result().line()[1]])

    @property
    def status_(self) -> mm.Status:
        """How training ended; its ``value`` is a sentence."""
        return self._result().trained.status

    @property
    def reason_(self) -> str:
        """The evidence behind the status, one sentence."""
        return self._result().trained.reason

    @property
    def gap_(self) -> AUCEstimate | None:
        """The true gap with its interval, on the data that the target is about; None without sensitive features."""
        result = self._result()
        return result.trained.gap if result.constrained else None

    @property
    def auc_(self) -> AUCEstimate:
        """The AUC with its interval, on the same rows as the gap."""
        return self._result().trained.auc

    @property
    def price_(self) -> float:
        """AUC of the model without constraint less that of this one, on the same rows."""
        return self._result().trained.price

    @property
    def target_(self) -> float | None:
        """The gap that training was held to: ``max_gap``, or less where a held-out part is to meet it."""
        result = self._result()
        return result.trained.target if result.constrained else None

    @property
    def certificate_(self) -> mm.Certificate | None:
        """Bounds on the optimal value of the surrogate problem, with ``kappa``; else None."""
        return self._result().trained.certificate

    @property
    def trace_(self) -> Mapping[str, Any]:
        """The solver's course: columns of equal length."""
        return self._result().trained.solution.trace

    @property
    def solution_(self) -> mm.Solution:
        """The solver's solution, in the units in which the model was trained."""
        return self._result().trained.solution

    @property
    def n_iter_(self) -> int:
        """Outer iterations of the solver."""
        return max(1, len(next(iter(self.trace_.values()), ())))

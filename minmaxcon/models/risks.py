"""Risks of a model as objectives or constraints: the mean loss, and the loss of the worst group."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, to_numpy
from minmaxcon.core import Batch, Evaluation, Source, StochasticMinMaxConstraint
from minmaxcon.errors import InvalidInput, Unsupported
from minmaxcon.geometry import SimplexBlock
from minmaxcon.models.base import Model
from minmaxcon.models.linear import Linear
from minmaxcon.models.losses import Loss

__all__ = ["GroupRisk", "Risk"]


class Risk(StochasticMinMaxConstraint):
    r"""The mean loss of a model, a plain expectation.

    .. math:: f(w) = E\,\ell(h_w(\xi), t)

    Reads the arrays ``features`` (n, p) and ``target`` (n,). Convex for linear models.

    Parameters
    ----------
    model : Model
        :math:`h_w`.
    loss : Loss
        :math:`\ell`.
    bound : float or array (R,)
        b.
    name : str
        What reports call it.

    Raises
    ------
    InvalidInput
        If model or loss is not of its kind.

    Examples
    --------
    >>> from minmaxcon.models import Linear, LogisticLoss, Risk
    >>> loss = Risk(Linear(2), LogisticLoss(), bound=0.6)
    >>> loss.bound, loss.convex
    (0.6, True)
    """

    def __init__(self, model: Model, loss: Loss, bound: Any = 0.0, *, name: str = "risk") -> None:
        for argument, value, kind in (("model", model, Model), ("loss", loss, Loss)):
            if not isinstance(value, kind):
                raise InvalidInput(argument, value, f"must be a {kind.__name__} of minmaxcon.models.")
        self.model, self.loss, self.bound, self.name = model, loss, bound, name
        self.convex = model.linear

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`StochasticMinMaxConstraint.evaluate`."""
        scores, pull = self.model.evaluate(x, batch["features"])
        value, slope = self.loss.evaluate(scores, batch["target"])
        share = 1.0 / int(scores.shape[-1])
        return Evaluation(value.sum(-1) * share, x[..., :0], lambda y, _: pull(slope * (y * share)[..., None]))

    def cvxpy_value(self, cp: Any, x: Any, data: Source) -> Any:
        """See :meth:`StochasticMinMaxConstraint.cvxpy_value`; :class:`Unsupported` if the model is not linear."""
        arrays = _arrays(self, data)
        count = len(arrays["target"])
        return self.loss.cvxpy_value(cp, x, arrays["features"], arrays["target"], np.full(count, 1.0 / count))


class GroupRisk(Risk):
    r"""The loss of the worst of several groups, plain or regularised.

    .. math::
        f(w) = \max_{\alpha\in\Delta} \sum_g \alpha_g E[\ell(h_w(\xi), t)\,|\,g] - \lambda\,KL(\alpha, \pi)

    With F = 0 and :math:`G_g = \ell\,1_g/\Pr(g)`. At temperature 0 it is the largest of the groups' risks, else
    :math:`\lambda\ln\sum_g\pi_g e^{R_g/\lambda}`, between that and their mean. Reads ``features``, ``target`` and
    ``group_weights`` (n, k), see :func:`minmaxcon.data.population_weights`.

    Parameters
    ----------
    model, loss, bound, name
        See :class:`Risk`.
    groups : int
        k.
    temperature : float
        :math:`\lambda \ge 0`.
    prior : array_like (k,), optional
        :math:`\pi`; uniform by default.

    Raises
    ------
    InvalidInput
        If a part is not of its kind, the temperature is negative or the prior is no positive distribution.

    References
    ----------
    Sagawa, Koh, Hashimoto and Liang (2020), Distributionally Robust Neural Networks.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> from minmaxcon.models import GroupRisk, Linear, SquaredLoss
    >>> worst = GroupRisk(Linear(2), SquaredLoss(), groups=2, bound=0.5)
    >>> worst.bound, worst.dual.dimension
    (0.5, 2)
    """

    def __init__(
        self,
        model: Model,
        loss: Loss,
        groups: int,
        bound: Any = 0.0,
        *,
        temperature: float = 0.0,
        prior: Any = None,
        name: str = "worst-group risk",
    ) -> None:
        super().__init__(model, loss, bound, name=name)
        self.dual = SimplexBlock(groups, temperature, prior)

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`StochasticMinMaxConstraint.evaluate`."""
        scores, pull = self.model.evaluate(x, batch["features"])
        value, slope = self.loss.evaluate(scores, batch["target"])
        weights = batch["group_weights"] * (1.0 / int(scores.shape[-1]))
        return Evaluation(0.0 * value[..., 0], value @ weights, lambda _, a: pull(slope * (a @ weights.T)))

    def cvxpy_value(self, cp: Any, x: Any, data: Source) -> Any:
        """See :meth:`Risk.cvxpy_value`."""
        arrays = _arrays(self, data)
        features, target = arrays["features"], arrays["target"]
        columns = arrays["group_weights"].T / len(target)
        risks = [self.loss.cvxpy_value(cp, x, features, target, weights) for weights in columns]
        block: Any = self.dual
        if block.temperature == 0.0:
            return cp.maximum(*risks) if len(risks) > 1 else risks[0]
        return block.temperature * cp.log_sum_exp(cp.hstack(risks) / block.temperature + np.log(block.start))


def _arrays(risk: Risk, data: Source) -> dict[str, Any]:
    """Return all rows as NumPy arrays; a risk of a model that is not linear is refused."""
    if not isinstance(risk.model, Linear):
        raise Unsupported(f"{type(risk.model).__name__} has no cvxpy form: only risks of linear models have.")
    pieces = [{name: np.asarray(to_numpy(value)) for name, value in batch.items()} for _, batch in data.chunks()]
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

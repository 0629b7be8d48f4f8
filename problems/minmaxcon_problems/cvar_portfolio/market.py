"""Scenarios of next month's returns, from a factor model with heavy tails."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["CASH", "simulate"]

CASH = 0.2
"""Return of the riskless asset, percent a month."""


def simulate(assets: int, scenarios: int, seed: int) -> tuple[Any, Any]:
    r"""Draw two independent sets of scenarios of the same market, in percent a month.

    .. math:: r_j = c + b_j\,(0.6 + 4f) + 2 s_j\,h_{k(j)} + 0.4\,q_j + \sigma_j e_j

    with market factor f, three sector factors :math:`h_k`, of which asset j sees one, and residuals :math:`e_j`, all
    independent, each of a Student law of 4 degrees of freedom scaled to variance 1, whose tails are as heavy as those
    of stocks. Loadings :math:`b_j` lie evenly in [0.4, 1.6], :math:`s_j` in [0.3, 1.2], :math:`\sigma_j` in [2, 6] and
    the excess :math:`q_j` in [-1, 1], each in a random order. The last asset is cash: c = 0.2 without risk.

    Parameters
    ----------
    assets, scenarios, seed : int
        Number of assets, cash included; scenarios in each set; seed.

    Returns
    -------
    train, test : ndarray (scenarios, assets)
        Returns in percent.
    """
    rng = np.random.default_rng(seed)
    risky = assets - 1

    def spread(low: float, high: float) -> Any:
        return rng.permutation(np.linspace(low, high, risky))

    def heavy(columns: int) -> Any:
        return rng.standard_t(4, size=(2 * scenarios, columns)) / np.sqrt(2.0)

    loading, sector, residual, excess = spread(0.4, 1.6), spread(0.3, 1.2), spread(2.0, 6.0), spread(-1.0, 1.0)
    market, sectors = 0.6 + 4.0 * heavy(1), 2.0 * heavy(3)[:, np.arange(risky) % 3]
    returns = CASH + loading * market + sector * sectors + 0.4 * excess + residual * heavy(risky)
    returns = np.concatenate([returns, np.full((2 * scenarios, 1), CASH)], axis=1)
    return returns[:scenarios], returns[scenarios:]

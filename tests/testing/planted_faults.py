"""Faulty objects, each beside its sound original and the check that should tell them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import minmaxcon as mm
from minmaxcon.testing import Finding
from minmaxcon.testing.check import Findings, Part
from minmaxcon.testing.constraint import constraint_part
from minmaxcon.testing.generator import generator_part
from minmaxcon.testing.oracle import oracle_part
from minmaxcon.testing.problem import problem_parts
from minmaxcon.testing.solver import solver_part
from tests.cases import arrays, problem, regression
from tests.problem_library import CVaR, HalfSquare, Linear, MeanGap, Robust, RobustRegression, WorstGroup
from tests.testing import faulty_functions as functions
from tests.testing import faulty_geometry as geometry
from tests.testing import faulty_oracles as oracles
from tests.testing import faulty_problems as problems
from tests.testing import faulty_solvers as solvers

BALL = functions.BALL
PAIR = mm.product([mm.Ball(3, 2.0), mm.Box([-3.0], [3.0])])


@dataclass(frozen=True)
class Fault:
    """A faulty object, the sound one, and the check that tells them apart; both made when they are needed."""

    check: str
    faulty: Callable[[], Part]
    sound: Callable[[], Part]


def on(function: Callable[[], Any], primal: Any = BALL) -> Callable[[], Part]:
    return lambda: constraint_part(function(), primal, functions.data())


def parts(made: Callable[[], tuple[Any, Any, Any]]) -> Callable[[], Part]:
    return lambda: constraint_part(*made())


def sound_auc() -> tuple[Any, Any, Any]:
    problem = functions.auc_problem()
    return problem.constraints[0], problem.primal, problem.data


def regressed(share: float) -> Callable[[], Part]:
    def build() -> Part:
        problem = regression()
        whole = float(problem.objective.weak_convexity)
        return constraint_part(RobustRegression(share * whole), problem.primal, problem.data)

    return build


def gen(make: Callable[[], Any]) -> Callable[[], Part]:
    return lambda: generator_part(make())


def oracle(make: Callable[[], mm.Oracle]) -> Callable[[], Part]:
    return lambda: oracle_part(make())


def solver(make: Callable[[], mm.Solver]) -> Callable[[], Part]:
    return lambda: solver_part(make())


@cache
def sound_oracle() -> Part:
    return oracle_part(oracles.Quick())


@cache
def sound_solver() -> Part:
    return solver_part(solvers.QuickLevels())


def one_sided(make: Callable[[], mm.Oracle]) -> Callable[[], Part]:
    """Return the checks of an oracle on a problem whose inner set lies to one side of 0."""

    def build() -> Part:
        data = functions.data()
        problem = mm.MinMaxProblem(HalfSquare(), [oracles.OneSided(-0.1)], mm.Ball(3, 2.0), data)
        return oracle_part(make(), problem)

    return build


def on_simplex(make: Callable[[], mm.Oracle]) -> Callable[[], Part]:
    return lambda: oracle_part(make(), problem("worst_group"))


QUICK_ON_SIMPLEX = on_simplex(oracles.Quick)


def on_box(make: Callable[[], mm.Oracle]) -> Callable[[], Part]:
    """Return the checks of an oracle on a problem whose inner interval does not hold 0."""

    def build() -> Part:
        return oracle_part(
            make(), mm.MinMaxProblem(HalfSquare(), [oracles.Surcharge(-0.1)], mm.Ball(3, 2.0), functions.data())
        )

    return build


QUICK_ON_BOX = on_box(oracles.Quick)


def whole(
    objective: Any = None,
    constraints: Any = None,
    source: Callable[[Any], Any] = mm.Finite,
    primal: Callable[[], Any] = lambda: mm.Ball(3, 6.0),
) -> Callable[[], Part]:
    """Return the suite of a problem as a whole."""

    def build() -> Part:
        drawn = arrays()
        data = source({name: drawn[name] for name in ("points", "costs")})
        made = (constraints or (lambda: [Linear(0.5)]))()
        problem = mm.MinMaxProblem((objective or HalfSquare)(), made, primal(), data)
        return problem_parts(problem)[-1]

    return build


WHOLE = whole()


def auc_whole(change: Callable[[Any, Any], Any] | None = None) -> Callable[[], Part]:
    """Return the suite of a fair AUC problem, whose family gives minimisers in closed form; ``change`` spoils them."""

    def build() -> Part:
        problem = functions.auc_problem()
        if change is not None:
            family = problem.family

            class Moved(type(family)):
                def refine(self, x: Any, data: Any) -> Any:
                    return change(x, super().refine(x, data))

            problem.__dict__["family"] = Moved(family.constraints)
        return problem_parts(problem)[-1]

    return build


AUC_WHOLE = auc_whole()

FAULTS: dict[str, Fault] = {
    # Functions: terms and gradients
    "wrong sign of the gradient": Fault("gradient", on(functions.WrongSign), on(HalfSquare)),
    "wrong factor of the gradient": Fault("gradient", on(functions.DoubleGradient), on(HalfSquare)),
    "gradient unlike autograd's": Fault("autograd", on(functions.DoubleGradient), on(HalfSquare)),
    "gradient misses the inner term": Fault(
        "gradient", on(lambda: functions.MissingTerm(3, 0.3)), on(lambda: Robust(3, 0.3))
    ),
    "weights of the batch's shares": Fault("unbiased", on(lambda: functions.BatchShare(3)), on(lambda: WorstGroup(3))),
    "sum instead of mean": Fault("unbiased", on(functions.SumNotMean), on(Linear)),
    "only the first sample counts": Fault("unbiased", on(functions.FirstSampleOnly), on(Linear)),
    "terms and evaluate disagree": Fault("terms", on(functions.OtherTerms), on(Linear)),
    "penalty without c1": Fault("reference_value", parts(functions.without_c1), parts(sound_auc)),
    "weights of wrong population shares": Fault(
        "reference_value", parts(functions.wrong_shares), on(lambda: WorstGroup(3))
    ),
    "cvxpy form of another function": Fault("reference_value", on(functions.OtherForm), on(Linear)),
    "maximum over half of the inner set": Fault("worst_case", on(functions.WrongMaximum), on(lambda: Robust(3, 0.3))),
    # Functions: convexity
    "non-convex loss declared convex": Fault("convexity", regressed(0.0), regressed(1.0)),
    "concave kink declared convex": Fault("convexity", on(functions.ConcaveKink), on(MeanGap)),
    "non-convex loss below its tangents": Fault("tangents", regressed(0.0), regressed(1.0)),
    "modulus understated by a tenth": Fault(
        "curvature", on(lambda: functions.Bent(1.0, 0.9)), on(lambda: functions.Bent(1.0, 1.0))
    ),
    # Functions: code
    "result in a buffer that is used again": Fault("pure", on(functions.Buffer), on(Linear)),
    "result is the batch's own memory": Fault("pure", on(functions.ViewOfBatch), on(lambda: Robust(3, 0.3))),
    "x is written to": Fault("pure", on(functions.WritesX), on(Linear)),
    "the batch is written to": Fault("pure", on(functions.WritesBatch), on(Linear)),
    "global random state of NumPy": Fault("pure", on(functions.GlobalRandom), on(Linear)),
    "global random state of torch": Fault("pure", on(functions.TorchGlobalRandom), on(Linear)),
    "other bits at each call": Fault("pure", on(functions.OwnRandom), on(Linear)),
    "float64 in F": Fault("precision", on(functions.Promotes), on(Linear)),
    "float64 in the gradient": Fault(
        "precision", parts(functions.cvar_promoting), lambda: constraint_part(CVaR(0.8), PAIR, functions.data())
    ),
    "a batch of one divides by zero": Fault("single_sample", on(functions.NeedsTwo), on(Linear)),
    "gradient of run 0 for every run": Fault("run_axis", on(functions.FirstRunOnly), on(HalfSquare)),
    "F with an axis too many": Fault("shapes", on(functions.OneRunShape), on(Linear)),
    "infinite where solvers start": Fault("shapes", on(functions.NotFinite), on(Linear)),
    "other numbers with torch": Fault("engines", on(functions.EngineDependent), on(Linear)),
    # Geometries
    "diameter too small": Fault("diameter", gen(lambda: geometry.LowDiameter(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))),
    "diameter too large": Fault("diameter", gen(lambda: geometry.HighDiameter(3)), gen(lambda: mm.Simplex(3))),
    "diameter too large by a two-thousandth": Fault(
        "diameter", gen(lambda: geometry.SlightlyHighDiameter(3)), gen(lambda: mm.Simplex(3))
    ),
    "prox without projection": Fault("prox", gen(lambda: geometry.NoProjection(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))),
    "prox forgets the penalty": Fault(
        "prox", gen(lambda: geometry.ForgetsPenalty(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    "prox with twice the step": Fault("prox", gen(lambda: geometry.WrongStep(3)), gen(lambda: mm.Simplex(3))),
    "prox unlike cvxpy's": Fault("reference_forms", gen(lambda: geometry.WrongStep(3)), gen(lambda: mm.Simplex(3))),
    "prox writes its anchor": Fault("pure", gen(lambda: geometry.InPlace(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))),
    "prox returns its argument": Fault(
        "pure", gen(lambda: geometry.ReturnsArgument([-1.0], [1.0])), gen(lambda: mm.Box([-1.0], [1.0]))
    ),
    "prox draws from the global state": Fault(
        "pure", gen(lambda: geometry.GlobalRandomProx(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    "prox promotes to float64": Fault(
        "precision", gen(lambda: geometry.PromotingProx(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    "prox gives NumPy arrays for tensors": Fault(
        "engines", gen(lambda: geometry.NumpyProx(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    "prox with the step of run 0": Fault(
        "run_axis", gen(lambda: geometry.FirstRunsStep(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    "largest linear value for the least": Fault(
        "linear_minimum", gen(lambda: geometry.Maximum(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    "norm too long for the modulus": Fault(
        "strong_convexity", gen(lambda: geometry.LongNorm(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    "an inequality that X violates": Fault(
        "inequalities", gen(lambda: geometry.WrongInequality(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    "dual norm too small": Fault("norms", gen(lambda: geometry.WrongDualNorm(3)), gen(lambda: mm.Simplex(3))),
    "everything lies in the set": Fault(
        "contains", gen(lambda: geometry.Everywhere(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    "generator's gradient is wrong": Fault(
        "gradient", gen(lambda: geometry.WrongGradient(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    "centre is no minimiser": Fault("center", gen(lambda: geometry.WrongCenter(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))),
    "divergence with arguments swapped": Fault(
        "divergence", gen(lambda: geometry.SwappedDivergence(3)), gen(lambda: mm.Simplex(3))
    ),
    "cvxpy form of a smaller set": Fault(
        "reference_forms", gen(lambda: geometry.SmallForm(3, 1.0)), gen(lambda: mm.Ball(3, 1.0))
    ),
    # Inner blocks and their generator
    "g is concave": Fault(
        "penalty_convex", gen(lambda: geometry.ConcavePenalty(2, 1.0, 0.5)), gen(lambda: mm.BallBlock(2, 1.0, 0.5))
    ),
    "maximum without the penalty": Fault(
        "maximize", gen(lambda: geometry.WrongSupport(2, 1.0, 0.5)), gen(lambda: mm.BallBlock(2, 1.0, 0.5))
    ),
    "inner prox without projection": Fault(
        "prox", gen(lambda: geometry.UnprojectedBlock(2, 1.0, 0.5)), gen(lambda: mm.BallBlock(2, 1.0, 0.5))
    ),
    "inner prox with a wrong value": Fault(
        "prox", gen(lambda: geometry.WrongValue(2, 1.0)), gen(lambda: mm.BallBlock(2, 1.0))
    ),
    "inner prox with half the penalty": Fault(
        "prox", gen(lambda: geometry.MissingFactor(2, 1.0, 0.5)), gen(lambda: mm.BallBlock(2, 1.0, 0.5))
    ),
    "modulus overclaimed": Fault(
        "strong_convexity", gen(lambda: geometry.Overclaimed(2, 1.0)), gen(lambda: mm.BallBlock(2, 1.0))
    ),
    "radius understated": Fault("radius", gen(lambda: geometry.SmallRadius(2, 3.0)), gen(lambda: mm.BallBlock(2, 3.0))),
    "K too small, from an understated radius": Fault(
        "strong_convexity",
        gen(lambda: mm.PerspectiveGenerator([geometry.SmallRadius(2, 3.0)] * 2, "theorem")),
        gen(lambda: mm.PerspectiveGenerator([mm.BallBlock(2, 3.0)] * 2, "theorem")),
    ),
    "divergence with half of K": Fault(
        "prox",
        gen(lambda: geometry.SmallConstant([mm.interval(1.0)] * 3)),
        gen(lambda: mm.PerspectiveGenerator([mm.interval(1.0)] * 3)),
    ),
    "maximum of the inner generator halved": Fault(
        "diameter",
        gen(lambda: geometry.LowMaximum([-1.0] * 2, [2.0] * 2)),
        gen(lambda: mm.BoxBlock([-1.0] * 2, [2.0] * 2)),
    ),
    "inner generator not 0 at its start": Fault(
        "start", gen(lambda: geometry.ShiftedBlock(2, 1.0)), gen(lambda: mm.BallBlock(2, 1.0))
    ),
    "cvxpy form of another penalty": Fault(
        "reference_forms", gen(lambda: geometry.OtherPenaltyForm(2, 1.0, 0.5)), gen(lambda: mm.BallBlock(2, 1.0, 0.5))
    ),
    "inner divergence doubled": Fault(
        "divergence", gen(lambda: geometry.DoubleDivergence(2, 1.0)), gen(lambda: mm.BallBlock(2, 1.0))
    ),
    "support function without the bound": Fault(
        "support",
        gen(lambda: geometry.WrongSupports([mm.interval(1.0)] * 3)),
        gen(lambda: mm.PerspectiveGenerator([mm.interval(1.0)] * 3)),
    ),
    "diameter without the entropy": Fault(
        "diameter",
        gen(lambda: geometry.NoEntropy([mm.interval(1.0)] * 3)),
        gen(lambda: mm.PerspectiveGenerator([mm.interval(1.0)] * 3)),
    ),
    # Problems and their data
    "functions fused in the wrong order": Fault(
        "fused",
        whole(lambda: problems.Misordered(), lambda: [problems.Misordered(0.5, sign=-1.0)]),
        whole(Linear, lambda: [Linear(0.5, sign=-1.0)]),
    ),
    "only half of the rows is drawn": Fault("sampling", whole(source=problems.Favourites), WHOLE),
    "shares of pieces do not sum to 1": Fault("sampling", whole(source=problems.WrongShares), WHOLE),
    "samples depend on the split of steps": Fault("draws", whole(source=problems.SplitMatters), WHOLE),
    "a family knows other means than those of the rows": Fault(
        "sampling", whole(functions.OtherMeans, lambda: [functions.OtherMeans(0.5)]), WHOLE
    ),
    "refine leaves the set": Fault("refine", auc_whole(lambda _, refined: 1.2 * refined), AUC_WHOLE),
    "refine makes functions larger": Fault("refine", auc_whole(lambda x, refined: x + 0.2 * (x - refined)), AUC_WHOLE),
    "bounds from a wrong linear minimum": Fault("lower_bounds", whole(primal=lambda: geometry.Maximum(3, 6.0)), WHOLE),
    "start that is not finite": Fault("start", whole(functions.NotFinite), WHOLE),
    "fused result in a buffer": Fault(
        "pure", whole(functions.BufferedFamily, lambda: [functions.BufferedFamily(9.0)]), WHOLE
    ),
    "float64 in the fused result": Fault(
        "precision", whole(functions.PromotingFamily, lambda: [functions.PromotingFamily(9.0)]), WHOLE
    ),
    "optimum of another function": Fault("reference_optimum", whole(problems.OptimisticForm), WHOLE),
    # Oracles
    "U below H": Fault("upper_bound", oracle(oracles.LowBound), sound_oracle),
    "U below H in noise": Fault("noisy_upper_bound", oracle(oracles.LowBoundInNoise), sound_oracle),
    "uniform averages where steps weight": Fault("upper_bounds_point", oracle(oracles.MixedWeights), sound_oracle),
    "upper is not the largest value": Fault("estimate", oracle(oracles.UnrelatedBound), sound_oracle),
    "returns its start": Fault("progress", oracle(oracles.LastStart), sound_oracle),
    "oracle ignores its seed": Fault("deterministic", oracle(oracles.Unrepeatable), sound_oracle),
    "bounds of run 0 for every run": Fault("run_axis", oracle(oracles.RunLeak), sound_oracle),
    "a point outside X": Fault("estimate", oracle(oracles.OutsideX), sound_oracle),
    "alpha where a is meant": Fault("estimate", oracle(oracles.AlphaForA), sound_oracle),
    "weights that do not sum to 1": Fault("estimate", oracle(oracles.UnnormalisedWeights), sound_oracle),
    "duals that prove too much": Fault("estimate", oracle(oracles.WrongDuals), sound_oracle),
    "half of a on a simplex": Fault("estimate", on_simplex(oracles.HalfDuals), QUICK_ON_SIMPLEX),
    "minus a on a simplex": Fault("estimate", on_simplex(oracles.NegativeDuals), QUICK_ON_SIMPLEX),
    "half of a on a box": Fault("estimate", on_box(oracles.HalfDuals), QUICK_ON_BOX),
    "minus a on a box": Fault("estimate", on_box(oracles.NegativeDuals), QUICK_ON_BOX),
    "U below H where there is an inner simplex": Fault("upper_bound", oracle(oracles.LowOnSimplex), sound_oracle),
    "U below H on the problem given": Fault("upper_bound", on_simplex(oracles.LowOnMany), QUICK_ON_SIMPLEX),
    "duals that prove nothing": Fault("tightness", oracle(oracles.NoDuals), sound_oracle),
    "a state that is written to": Fault("pure", oracle(oracles.WritesState), sound_oracle),
    "proximal term forgotten": Fault("proximal", oracle(oracles.ForgetsProximal), sound_oracle),
    "the next query begins elsewhere and does little": Fault("goes_on", oracle(oracles.Tires), sound_oracle),
    "the next query draws the same samples": Fault("goes_on", oracle(oracles.StaysAtPosition), sound_oracle),
    "NumPy float64 for every engine": Fault("engines", oracle(oracles.NumpyOnly), sound_oracle),
    "inner variables on the wrong side": Fault("lower", one_sided(oracles.OtherSide), one_sided(oracles.Quick)),
    # Solvers
    "says solved of an infeasible problem": Fault("infeasible", solver(solvers.AlwaysFeasible), sound_solver),
    "says solved far from the optimum": Fault("honest_status", solver(solvers.SolvedTooEarly), sound_solver),
    "stale objective": Fault("true_values", solver(solvers.StaleObjective), sound_solver),
    "constraints of other bounds": Fault("true_values", solver(solvers.WrongConstraints), sound_solver),
    "lower bound above the optimum": Fault("certificate", solver(solvers.HighLower), sound_solver),
    "steps are not counted": Fault("budget", solver(solvers.CountsNoSteps), sound_solver),
    "start ignored": Fault("start", solver(solvers.IgnoresStart), sound_solver),
    "bounds ignored": Fault("true_values", solver(solvers.IgnoresBounds), sound_solver),
    "bound of run 0 for every run": Fault("run_axis", solver(solvers.FirstRunsBound), sound_solver),
    "solver ignores its seed": Fault("deterministic", solver(solvers.UnrepeatableSolver), sound_solver),
    "data are written to": Fault("pure", solver(solvers.WritesData), sound_solver),
    "trace that does not tell runs apart": Fault("trace", solver(solvers.TornTrace), sound_solver),
    "worse than the start": Fault("progress", solver(solvers.Worse), sound_solver),
}


def found(part: Part, name: str) -> Finding:
    """Return the finding of one check alone, without those that it comes after."""
    (check,) = [check for check in part.checks if check.name == name]
    alone = replace(part, checks=(replace(check, after=()),), after=())
    return Findings([alone], 0).all()[0]

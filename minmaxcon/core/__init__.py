"""The problem class and its interfaces: constraints, problems, level problems, sources, oracles and solutions."""

from minmaxcon.core.constraint import ConstraintFamily, Evaluation, StochasticMinMaxConstraint, WrappedFamily
from minmaxcon.core.evidence import Evidence, Proved, proved, proved_of_runs
from minmaxcon.core.level import LevelProblem, Proximal
from minmaxcon.core.modulus import ModulusEstimate, ModulusWitness, estimate_modulus
from minmaxcon.core.needs import Needs
from minmaxcon.core.oracle import Estimate, Oracle, Start
from minmaxcon.core.problem import MinMaxProblem
from minmaxcon.core.refreshed import Observation, RefreshedProblem, TrueMeasure
from minmaxcon.core.solution import Certificate, Solution, Status
from minmaxcon.core.solver import Outcome, Points, RunsState, Solver
from minmaxcon.core.source import Batch, Batches, Position, Source

__all__ = [
    "Batch",
    "Batches",
    "Certificate",
    "ConstraintFamily",
    "Estimate",
    "Evaluation",
    "Evidence",
    "LevelProblem",
    "MinMaxProblem",
    "ModulusEstimate",
    "ModulusWitness",
    "Needs",
    "Observation",
    "Oracle",
    "Outcome",
    "Points",
    "Position",
    "Proved",
    "Proximal",
    "RefreshedProblem",
    "RunsState",
    "Solution",
    "Solver",
    "Source",
    "Start",
    "Status",
    "StochasticMinMaxConstraint",
    "TrueMeasure",
    "WrappedFamily",
    "estimate_modulus",
    "proved",
    "proved_of_runs",
]

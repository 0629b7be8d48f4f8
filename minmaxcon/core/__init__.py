"""The problem class and its interfaces: constraints, problems, level problems, sources, oracles and solutions."""

from minmaxcon.core.constraint import ConstraintFamily, Evaluation, StochasticMinMaxConstraint, WrappedFamily
from minmaxcon.core.evidence import Evidence, Proved, proved, proved_of_runs
from minmaxcon.core.first_order import Linearised, Neighbour, allowed_fall, proved_distance
from minmaxcon.core.level import LevelProblem, Proximal
from minmaxcon.core.modulus import ModulusEstimate, ModulusWitness, estimate_modulus
from minmaxcon.core.needs import Needs
from minmaxcon.core.oracle import Estimate, Oracle, Start
from minmaxcon.core.problem import MinMaxProblem, solution_point
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
    "Linearised",
    "MinMaxProblem",
    "ModulusEstimate",
    "ModulusWitness",
    "Needs",
    "Neighbour",
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
    "allowed_fall",
    "estimate_modulus",
    "proved",
    "proved_distance",
    "proved_of_runs",
    "solution_point",
]

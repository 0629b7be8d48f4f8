r"""Constrained stochastic min-max optimization.

Minimise :math:`f_0(x)` subject to :math:`f_i(x) \le b_i`, where every :math:`f_i` is a maximum over inner variables
of an expectation, known only through samples.

>>> import minmaxcon as mm
>>> problem = mm.load_problem("fair_auc", data="loanapp", metric="inter_group", kappa=0.1)
>>> solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD()), seed=0)  # doctest: +SKIP
"""

from minmaxcon.core import (
    Batch,
    Certificate,
    ConstraintFamily,
    Estimate,
    Evaluation,
    LevelProblem,
    MinMaxProblem,
    Oracle,
    Outcome,
    Position,
    Proximal,
    Solution,
    Solver,
    Source,
    Start,
    Status,
    StochasticMinMaxConstraint,
)
from minmaxcon.data import Finite, Preparation, Stream
from minmaxcon.errors import (
    DataError,
    InvalidInput,
    MinMaxConError,
    MissingDependency,
    UnknownName,
    Unsupported,
)
from minmaxcon.geometry import (
    Ball,
    BallBlock,
    Box,
    BoxBlock,
    DistanceGenerator,
    DualPoint,
    InnerBlock,
    PerspectiveGenerator,
    Simplex,
    SimplexBlock,
    entropy_weight_bound,
    interval,
    product,
)
from minmaxcon.models import MLP, Linear, Model, TorchModule, mlp
from minmaxcon.registry import ProblemPlugin, load_problem, plugin, plugin_names
from minmaxcon.solvers import (
    IQRC,
    SFLS,
    SMD,
    Adaptive,
    InverseSqrt,
    Progress,
    StepRule,
    Theory,
    iterate,
    progress_bar,
    solve,
)

__all__ = [
    "IQRC",
    "MLP",
    "SFLS",
    "SMD",
    "Adaptive",
    "Ball",
    "BallBlock",
    "Batch",
    "Box",
    "BoxBlock",
    "Certificate",
    "ConstraintFamily",
    "DataError",
    "DistanceGenerator",
    "DualPoint",
    "Estimate",
    "Evaluation",
    "Finite",
    "InnerBlock",
    "InvalidInput",
    "InverseSqrt",
    "LevelProblem",
    "Linear",
    "MinMaxConError",
    "MinMaxProblem",
    "MissingDependency",
    "Model",
    "Oracle",
    "Outcome",
    "PerspectiveGenerator",
    "Position",
    "Preparation",
    "ProblemPlugin",
    "Progress",
    "Proximal",
    "Simplex",
    "SimplexBlock",
    "Solution",
    "Solver",
    "Source",
    "Start",
    "Status",
    "StepRule",
    "StochasticMinMaxConstraint",
    "Stream",
    "Theory",
    "TorchModule",
    "UnknownName",
    "Unsupported",
    "entropy_weight_bound",
    "interval",
    "iterate",
    "load_problem",
    "mlp",
    "plugin",
    "plugin_names",
    "product",
    "progress_bar",
    "solve",
]

__version__ = "0.1.0"

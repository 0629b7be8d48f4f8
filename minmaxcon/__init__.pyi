# The public names, in groups. Type checkers read this file as it stands, and `__init__.py` imports from it lazily.

__version__: str

# Problems: what is minimised, and subject to what
from .core import Batch as Batch
from .core import ConstraintFamily as ConstraintFamily
from .core import Evaluation as Evaluation
from .core import MinMaxProblem as MinMaxProblem
from .core import StochasticMinMaxConstraint as StochasticMinMaxConstraint
from .registry import ProblemPlugin as ProblemPlugin
from .registry import load_problem as load_problem
from .registry import plugin as plugin
from .registry import plugin_names as plugin_names

# Problems with a true measure beside their surrogates
from .core import Observation as Observation
from .core import RefreshedProblem as RefreshedProblem
from .core import TrueMeasure as TrueMeasure

# Geometries: sets of x, and of inner variables
from .geometry import Ball as Ball
from .geometry import BallBlock as BallBlock
from .geometry import Box as Box
from .geometry import BoxBlock as BoxBlock
from .geometry import DistanceGenerator as DistanceGenerator
from .geometry import DualPoint as DualPoint
from .geometry import InnerBlock as InnerBlock
from .geometry import PerspectiveGenerator as PerspectiveGenerator
from .geometry import Simplex as Simplex
from .geometry import SimplexBlock as SimplexBlock
from .geometry import entropy_weight_bound as entropy_weight_bound
from .geometry import interval as interval
from .geometry import product as product

# Data: where samples come from
from .core import Position as Position
from .core import Source as Source
from .data import Finite as Finite
from .data import OnDisk as OnDisk
from .data import Preparation as Preparation
from .data import Stream as Stream

# Models: scores of rows from one parameter vector
from .models import MLP as MLP
from .models import Linear as Linear
from .models import Model as Model
from .models import TorchModule as TorchModule
from .models import mlp as mlp

# Solving: the loop, and what it returns
from .core import Certificate as Certificate
from .core import Outcome as Outcome
from .core import Points as Points
from .core import RunsState as RunsState
from .core import Solution as Solution
from .core import Start as Start
from .core import Status as Status
from .solvers import Progress as Progress
from .solvers import iterate as iterate
from .solvers import progress_bar as progress_bar
from .solvers import progress_lines as progress_lines
from .solvers import solve as solve

# Solvers
from .core import Solver as Solver
from .solvers import IQRC as IQRC
from .solvers import SFLS as SFLS
from .solvers import ConEx as ConEx
from .solvers import PrimalDual as PrimalDual
from .solvers import SuccessiveApproximation as SuccessiveApproximation
from .solvers import SwitchingSubgradient as SwitchingSubgradient

# Oracles of level problems, and their step rules
from .core import Estimate as Estimate
from .core import LevelProblem as LevelProblem
from .core import Needs as Needs
from .core import Oracle as Oracle
from .core import Proximal as Proximal
from .oracles import SMD as SMD
from .oracles import Adaptive as Adaptive
from .oracles import ExtraGradient as ExtraGradient
from .oracles import InverseSqrt as InverseSqrt
from .oracles import MirrorProx as MirrorProx
from .oracles import StepRule as StepRule
from .oracles import Theory as Theory
from .oracles import VarianceReduced as VarianceReduced

# Weak convexity and stationarity
from .core import ModulusEstimate as ModulusEstimate
from .core import ModulusWitness as ModulusWitness
from .core import estimate_modulus as estimate_modulus
from .solvers import KKTResidual as KKTResidual
from .solvers import Stationarity as Stationarity
from .solvers import kkt_residual as kkt_residual
from .solvers import stationarity as stationarity

# Errors and warnings
from .errors import CheckpointWarning as CheckpointWarning
from .errors import EngineWarning as EngineWarning
from .errors import CorruptCheckpoint as CorruptCheckpoint
from .errors import DataError as DataError
from .errors import InvalidInput as InvalidInput
from .errors import MinMaxConError as MinMaxConError
from .errors import MissingDependency as MissingDependency
from .errors import OutOfMemory as OutOfMemory
from .errors import UnknownName as UnknownName
from .errors import Unsupported as Unsupported
from .errors import WeakConvexityWarning as WeakConvexityWarning

# Packages
from . import arrays as arrays
from . import checks as checks
from . import core as core
from . import data as data
from . import distributed as distributed
from . import errors as errors
from . import geometry as geometry
from . import metrics as metrics
from . import models as models
from . import oracles as oracles
from . import reference as reference
from . import registry as registry
from . import results as results
from . import solvers as solvers
from . import tables as tables
from . import testing as testing

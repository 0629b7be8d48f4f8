r"""Constrained stochastic min-max optimization.

Minimise :math:`f_0(x)` subject to :math:`f_i(x) \le b_i`, where every :math:`f_i` is a maximum over inner variables
of an expectation, known only through samples.

>>> import minmaxcon as mm
>>> problem = mm.load_problem("toy")
>>> solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD()), seed=0)  # doctest: +SKIP

The public names stand in ``__init__.pyi``, in groups; each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"

"""Frozen values as plain trees and arrays, and back, without pickle: what a checkpoint holds of a state.

A tree is made of what JSON knows; arrays stand apart. In it

* an array, a number of NumPy, a tuple, a list, a mapping with text keys and a member of an enumeration are themselves;
* a frozen dataclass is its class's name and its fields, and is put together again without running its code;
* an object whose class names in ``rebuilt_from`` the arguments of its constructor, which it keeps as attributes, is
  made from them anew;
* a part of the problem (its data, set, functions, families) is a reference: whoever reads a tree brings the problem;
* a problem that was made of the problem, with other bounds, a proximal term or a block of a stream, is what differs.

Classes are found among modules that are loaded, and only in packages that the problem and the solver come from.
"""

from __future__ import annotations

import enum
import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

from minmaxcon.arrays import engine, namespace
from minmaxcon.core.problem import MinMaxProblem
from minmaxcon.core.refreshed import RefreshedProblem
from minmaxcon.errors import CorruptCheckpoint, Unsupported

__all__ = ["Codec"]

_Seen = dict[int, tuple[int, Any]]
"""Number and value of the arrays that were written, by address."""

_PLAIN = (bool, int, str, type(None))
_DEPTH = 100


class Codec:
    """Translates values that belong to a problem.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, whose parts are referred to.
    packages : collection of str
        Packages whose classes may be put together again, beside minmaxcon.
    """

    def __init__(self, problem: MinMaxProblem, packages: Collection[str] = ()) -> None:
        self._packages = {"minmaxcon", *packages}
        self._parts = _parts(problem)
        self._names = {id(part): name for name, part in reversed(self._parts.items())}

    def encode(self, value: Any) -> tuple[Any, list[Any]]:
        """Return the tree of a value, and its arrays.

        Raises
        ------
        Unsupported
            If a part is neither of these kinds; its place and class are named.
        """
        arrays: list[Any] = []
        return self._encode(value, "state", arrays, {}), arrays

    def decode(self, tree: Any, arrays: Sequence[Any]) -> Any:
        """Return the value of a tree.

        Raises
        ------
        CorruptCheckpoint
            If it is no tree of a value that belongs to the problem; the place is named.
        """
        try:
            return self._decode(tree, arrays, 0)
        except CorruptCheckpoint:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration) as failure:
            raise CorruptCheckpoint("state", f"cannot be put together ({failure}).") from failure

    # ------------------------------------------------------------------------------------------------ writing

    def _encode(self, value: Any, place: str, arrays: list[Any], seen: _Seen) -> Any:
        if type(value) in _PLAIN:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if id(value) in self._names:
            return {"part": self._names[id(value)]}
        if isinstance(value, np.generic):
            return {"scalar": self._put(np.asarray(value), place, arrays)}
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            return self._array(value, place, arrays, seen)
        if isinstance(value, enum.Enum):
            return {"member": value.name, "class": self._class(type(value), place)}
        if type(value) is tuple:
            return [self._encode(item, f"{place}[{i}]", arrays, seen) for i, item in enumerate(value)]
        if type(value) is list:
            return {"list": [self._encode(item, f"{place}[{i}]", arrays, seen) for i, item in enumerate(value)]}
        if isinstance(value, Mapping) and all(type(key) is str for key in value):
            return {"mapping": {key: self._encode(item, f"{place}.{key}", arrays, seen) for key, item in value.items()}}
        if isinstance(value, MinMaxProblem):
            return {"problem": self._difference(value, place, arrays, seen)}
        rebuilt = getattr(type(value), "rebuilt_from", None)
        if rebuilt is None and not (is_dataclass(value) and not isinstance(value, type)):
            raise self._refusal(value, place)
        names = [field.name for field in fields(value)] if rebuilt is None else list(rebuilt)
        found = {name: self._encode(getattr(value, name), f"{place}.{name}", arrays, seen) for name in names}
        return {"fields" if rebuilt is None else "made": found, "class": self._class(type(value), place)}

    def _array(self, value: Any, place: str, arrays: list[Any], seen: _Seen) -> Any:
        """Return the reference to an array; one that occurs twice is kept once."""
        if id(value) not in seen:  # it is kept alive meanwhile, as an address is given away again
            seen[id(value)] = self._put(np.asarray(namespace(value).to_numpy(value)), place, arrays), value
        name = namespace(value).name
        number = seen[id(value)][0]
        return {"array": number} if name == "numpy" else {"array": number, "engine": name}

    @staticmethod
    def _put(value: Any, place: str, arrays: list[Any]) -> int:
        if value.dtype.hasobject:
            raise Unsupported(f"{place} is an array of objects, which no checkpoint can hold; keep numbers in it.")
        arrays.append(value)
        return len(arrays) - 1

    def _difference(self, value: MinMaxProblem, place: str, arrays: list[Any], seen: _Seen) -> Any:
        """Return how a problem differs from the one that it was made of."""

        def put(name: str, part: Any) -> Any:
            return self._encode(part, f"{place}.{name}", arrays, seen)

        for name, root in self._parts.items():
            if not isinstance(root, MinMaxProblem) or type(root) is not type(value):
                continue
            block = isinstance(value, RefreshedProblem) and value.data is not root.data
            if value.family is root.family or (block and value.constraints is root.constraints):
                found = {"of": name, "data": put("data", value.data) if block else None}
                bounds = [put("bound", constraint.bound) for constraint in value.constraints]
                return {**found, "bounds": bounds, "proximal": put("proximal", value.proximal)}
        raise self._refusal(value, place)

    def _class(self, found: type, place: str) -> str:
        name = f"{found.__module__}:{found.__qualname__}"
        try:
            known = self._found(name) is found
        except (CorruptCheckpoint, TypeError):  # TypeError: a class in a function
            known = False
        if not known:
            raise Unsupported(
                f"{place} is a {found.__qualname__}, which no checkpoint can hold: no frozen dataclass or enumeration "
                "of this name is found in the package of the problem or the solver; define it at the top of a module "
                "of theirs."
            )
        return name

    @staticmethod
    def _refusal(value: Any, place: str) -> Unsupported:
        return Unsupported(
            f"{place} is a {type(value).__qualname__}, which no checkpoint can hold: a state is made of numbers, "
            "arrays, tuples, frozen dataclasses and parts of the problem; or let its class name its arguments in "
            "rebuilt_from."
        )

    # ------------------------------------------------------------------------------------------------ reading

    def _decode(self, tree: Any, arrays: Sequence[Any], depth: int) -> Any:
        if depth > _DEPTH:
            raise CorruptCheckpoint("state", "is nested too deep.")
        if type(tree) in (*_PLAIN, float):
            return tree

        def read(part: Any) -> Any:
            return self._decode(part, arrays, depth + 1)

        if isinstance(tree, list):
            return tuple(map(read, tree))
        readers: dict[str, Callable[[Any], Any]] = {
            "float": float,
            "part": lambda name: self._parts[name],
            "scalar": lambda number: arrays[number][()],
            "array": lambda number: _restored(arrays[number], tree.get("engine", "numpy")),
            "list": lambda items: list(map(read, items)),
            "mapping": lambda items: {key: read(item) for key, item in items.items()},
            "problem": lambda parts: self._changed({name: read(part) for name, part in parts.items()}),
            "member": lambda name: self._found(tree["class"])[name],
            "made": lambda parts: _made(self._found(tree["class"]), {name: read(part) for name, part in parts.items()}),
            "fields": lambda parts: _assembled(
                self._found(tree["class"]), {name: read(part) for name, part in parts.items()}
            ),
        }
        kind = next(iter(tree))
        return readers[kind](tree[kind])

    def _changed(self, difference: Mapping[str, Any]) -> Any:
        """Return the problem that differs so from the one that it was made of."""
        found = self._parts[difference["of"]]
        if difference["data"] is not None:
            found = found.on(difference["data"])
        bounds, proximal = difference["bounds"], difference["proximal"]
        own = [constraint.bound for constraint in found.constraints]
        if len(bounds) != len(own) or not all(map(np.array_equal, bounds, own)):
            found = found.with_bounds(*bounds)  # new constraints, by which a block would not be known again
        return found if proximal is None else found.with_proximal(proximal.center, proximal.weight)

    def _found(self, name: str) -> Any:
        """Return the class of a name: a frozen dataclass, an enumeration, or one that says what it is rebuilt from."""
        module, _, path = name.partition(":")
        if module.partition(".")[0] not in self._packages or module not in sys.modules:
            raise CorruptCheckpoint("state", f"names {name!r:.80}, which is no class of the problem or the solver.")
        found: Any = sys.modules[module]
        for part in path.split("."):
            found = vars(found).get(part)
        frozen = getattr(getattr(found, "__dataclass_params__", None), "frozen", False)
        known = isinstance(found, type) and (frozen or issubclass(found, enum.Enum) or hasattr(found, "rebuilt_from"))
        if not known or found.__module__ != module or hasattr(found, "__del__"):
            raise CorruptCheckpoint("state", f"names {name!r:.80}, which is no class of values.")
        return found


def _restored(value: Any, name: str) -> Any:
    return value if name == "numpy" else engine(name).create(value, str(value.dtype))


def _made(found: Any, arguments: Mapping[str, Any]) -> Any:
    """Return a new instance of a class that says what it is rebuilt from."""
    if sorted(arguments) != sorted(getattr(found, "rebuilt_from", ())):
        raise CorruptCheckpoint("state", f"{found.__qualname__} is not rebuilt from these arguments.")
    return found(**arguments)


def _assembled(found: Any, given: Mapping[str, Any]) -> Any:
    """Return an instance of a frozen dataclass with these fields, without running its code."""
    value = object.__new__(found)
    known = {field.name: field for field in fields(found)}
    unknown = given.keys() - known.keys()
    for name, field in known.items():
        if name in given:
            part = given[name]
        elif field.default is not MISSING:
            part = field.default
        else:
            unknown = {name}
            break
        object.__setattr__(value, name, part)
    if unknown:
        need = (
            f"{found.__qualname__} has other fields, such as {min(unknown)!r}: another version wrote it; solve again."
        )
        raise CorruptCheckpoint("state", need)
    return value


def _parts(problem: MinMaxProblem, prefix: str = "") -> dict[str, Any]:
    """Return the parts of a problem by name."""
    found: dict[str, Any] = {
        "problem": problem,
        "family": problem.family,
        "constraint_family": problem.constraint_family,
        "primal": problem.primal,
        "data": problem.data,
    }
    for i, function in enumerate((problem.objective, *problem.constraints)):
        found[f"function {i}"] = function
        if function.dual is not None:
            found[f"block {i}"] = function.dual
    if isinstance(problem, RefreshedProblem):
        found["measure"] = problem.measure
        if problem.first is not None:
            found |= _parts(problem.first, "first ")
    return {prefix + name: part for name, part in found.items()}

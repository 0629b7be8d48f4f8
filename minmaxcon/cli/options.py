"""Options: types that commands share, those of a problem by the signature of ``load``, and their names in errors."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from cyclopts import Group, Parameter

from minmaxcon.errors import DataError, InvalidInput, MinMaxConError
from minmaxcon.registry import ProblemPlugin

__all__ = [
    "Flag",
    "Place",
    "Whole",
    "bound_options",
    "explain",
    "keywords_of",
    "names_of",
    "one_line",
    "option_names",
    "printable",
    "wholes_of",
    "with_options",
    "words_of",
]

_SEQUENCES = (Sequence, list, tuple)

_ROLE = re.compile(r":[a-z:]+:`~?([^`]*)`")
_MACRO = re.compile(r"\\([A-Za-z]+)")


def _whole(_type: Any, tokens: Any) -> int:
    """Read a whole number, and refuse 3.5 where a plain conversion would round it."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number.") from None


Whole = Annotated[int, Parameter(converter=_whole)]
"""A whole number."""

Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
"""A switch that is off unless it is given."""


def _place(_type: Any, tokens: Any) -> Path:
    """Read a path; an empty one, such as of a variable that is not set, would be the folder that Python is in."""
    text = tokens[0].value
    if not text.strip():
        raise ValueError("the path is empty; name a file or folder, '.' for this folder.")
    return Path(text)


Place = Annotated[Path, Parameter(converter=_place)]
"""A path."""


def names_of(option: str, text: str | None) -> list[str] | None:
    """Return the names in a list that commas separate, each once.

    Parameters
    ----------
    option : str
        The option's name in Python, for the message.
    text : str or None
        What followed it.

    Raises
    ------
    InvalidInput
        A name is empty.
    """
    if text is None:
        return None
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise InvalidInput(option, text, "must be names separated by commas, such as a,b.")
    return list(dict.fromkeys(found))


def wholes_of(option: str, text: str) -> list[int]:
    """Return the whole numbers, none negative, in a list that commas separate.

    Raises
    ------
    InvalidInput
        A part of it is no whole number of at least 0.
    """
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = [-1]
    if min(found) < 0:
        raise InvalidInput(option, text, "must be a whole number of at least 0, or several separated by commas.")
    return found


def with_options(
    command: Callable[..., Any],
    plugin: ProblemPlugin | None,
    functions: Sequence[Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """Return a command, which takes any further keyword argument, with its own options and those of a problem.

    Types, defaults and help are those of the signature and the docstring of the plug-in's ``load``; or, of other
    ``functions``, of the arguments that are given by name alone. Without a plug-in or functions no option is added. An
    option with the name of one of the command's own is the command's.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters.values()
    own = [one.replace(annotation=hints[one.name]) for one in parameters if one.kind is not one.VAR_KEYWORD]
    more: list[inspect.Parameter] = []
    title = "Options" if plugin is None else f"Options of {plugin.name}"
    if functions is None and plugin is not None:
        more = _options_of(plugin.load, title, {one.name for one in own})
    for function in functions or ():
        found = _options_of(function, title, {one.name for one in (*own, *more)})
        any_name = [] if any(one.kind is one.VAR_KEYWORD for one in more) else [inspect.Parameter.VAR_KEYWORD]
        more += [one for one in found if one.kind in any_name or one.name in keywords_of(function)]
    more.sort(key=lambda one: one.kind)

    def run(*arguments: Any, **options: Any) -> Any:
        # What a load takes by any name comes as it was typed.
        return command(*arguments, **{name.replace("-", "_"): value for name, value in options.items()})

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {one.name: one.annotation for one in (*own, *more)}
    run.__dict__["__signature__"] = inspect.Signature([*own, *more])
    return run


def option_names(command: Callable[..., Any]) -> list[str]:
    """Return the names in Python of the options of a command, those of its groups of options among them.

    Cyclopts would find them with all that they take, which is most of what a refusal costs.
    """
    found: list[str] = []
    hints = get_type_hints(command, include_extras=True)
    for name in keywords_of(command):
        kind, *marks = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        own = [word for mark in marks if isinstance(mark, Parameter) for word in mark.name or ()]
        if is_dataclass(kind):
            found += [field.name for field in fields(kind)]
        else:
            found += [word[2:].replace("-", "_") for word in own if word.startswith("--")] or [name]
    return found


def bound_options(plugin: ProblemPlugin) -> list[str]:
    """Return the options of a problem that are a number or several: each of several is a run of its own."""
    hints = _hints(plugin.load)
    return [
        option for option in plugin.options() if (found := _numbers_of(_members(hints.get(option, Any)))) and found[1]
    ]


def keywords_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments of a function that can be given by name alone."""
    return [one.name for one in inspect.signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError:  # a name that only type checkers import
        return {}


def _options_of(function: Callable[..., Any], title: str, taken: Collection[str]) -> list[inspect.Parameter]:
    """Return the options of a function as parameters that cyclopts reads; what no word can say is left out."""
    hints = _hints(function)
    texts, group = _descriptions(inspect.getdoc(function) or ""), Group(title, sort_key=0)
    found = []
    for one in inspect.signature(function).parameters.values():
        read_as = _read_as(hints.get(one.name, Any), one.default)
        negative = "--no-" + one.name.replace("_", "-") if read_as in (bool, bool | None) else ()
        shows = False if one.default is None else _typed
        shown = Parameter(group=group, help=texts.get(one.name), negative=negative, show_default=shows)
        if one.kind is one.VAR_KEYWORD:
            anything = Annotated[str, Parameter(group=group, allow_leading_hyphen=True)]
            found.append(one.replace(annotation=anything))
        elif one.kind is not one.VAR_POSITIONAL and one.name not in taken and read_as is not None:
            found.append(one.replace(kind=one.KEYWORD_ONLY, annotation=Annotated[read_as, shown]))
    return found


def _read_as(annotation: Any, default: Any) -> Any:
    """Return the type that cyclopts reads an option as; a sequence is a list that commas separate."""
    members = [one for one in _members(annotation) if one is not type(None)]
    if members == [Any] and isinstance(default, list | tuple):
        members = [Sequence[float] if default and isinstance(default[0], int | float) else Sequence[str]]
    elif members == [Any]:
        members = [str if default is None or default is inspect.Parameter.empty else type(default)]
    if numbers := _numbers_of(members):
        read = partial(_read_numbers, kind=numbers[0], alone=numbers[1])
        return Annotated[Any, Parameter(converter=read, allow_leading_hyphen=True, metavar=numbers[0].__name__.upper())]
    words = [word for one in members if get_origin(one) is Literal for word in get_args(one)]
    if words and float in members:
        read = partial(_read_number_or_word, words=words)
        metavar = "|".join(["FLOAT", *words])
        return Annotated[Any, Parameter(converter=read, allow_leading_hyphen=True, metavar=metavar)]
    if any(get_origin(one) in _SEQUENCES for one in members):
        return Annotated[Any, Parameter(converter=_read_names, allow_leading_hyphen=True, metavar="STR")]
    for kind, read_as in ((bool, bool), (float, float), (int, Whole), (str, str), (Path, Place)):
        if kind in members:
            return read_as | None if default is None else read_as
    return annotation if all(get_origin(one) is Literal for one in members) else None


def _numbers_of(members: Sequence[Any]) -> tuple[type, bool] | None:
    """Return of which kind the numbers of a sequence are, and whether one may stand alone; None for no such option."""
    several = [get_args(one)[0] for one in members if get_origin(one) in _SEQUENCES]
    kind = next((kind for kind in (float, int) if kind in several), None)
    return None if kind is None else (kind, float in members or int in members)


def _members(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, UnionType):
        return [member for part in get_args(annotation) for member in _members(part)]
    return [annotation]


def _read_numbers(_type: Any, tokens: Any, *, kind: type, alone: bool) -> Any:
    """Read numbers that commas separate; one is no list where the option may be a number."""
    numbers = []
    for part in tokens[0].value.split(","):
        try:
            numbers.append(kind(part))
        except ValueError:
            wanted = "whole number" if kind is int else "number"
            raise ValueError(f"{part.strip()!r} is no {wanted}; give one, or several separated by commas.") from None
    return numbers[0] if alone and len(numbers) == 1 else numbers


def _read_number_or_word(_type: Any, tokens: Any, *, words: Sequence[str]) -> Any:
    text = tokens[0].value
    if text in words:
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a number nor {' or '.join(words)}.") from None


def _read_names(_type: Any, tokens: Any) -> list[str]:
    return [part.strip() for part in tokens[0].value.split(",")]


@lru_cache(maxsize=32)
def _descriptions(docstring: str) -> Mapping[str, str]:
    """Return what a numpydoc docstring says of each parameter, as plain text; names may share a description."""
    from docstring_parser import DocstringStyle, parse

    found = {}
    for described in parse(docstring, DocstringStyle.NUMPYDOC).params:
        text = " ".join((described.description or "").split())
        text = _ROLE.sub(r"\1", text).replace("``", "`")
        found.update(dict.fromkeys((name.strip() for name in described.arg_name.split(",")), _MACRO.sub(r"\1", text)))
    return found


def words_of(options: Mapping[str, Any]) -> str:
    """Return options as they are typed; one that is None is not given.

    A value that begins with a dash would be taken for another option: it stands after ``=``.

    Examples
    --------
    >>> words_of({"bound": [0.05, 0.1], "folder": "my data", "strict": True, "engine": None})
    "--bound 0.05,0.1 --folder 'my data' --strict"
    >>> words_of({"column": "-sex"})
    '--column=-sex'
    """
    words = []
    for option, value in options.items():
        name = option.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        elif value is not None:
            typed = _typed(value)
            words.append(f"--{name}{'=' if typed.startswith('-') else ' '}{shlex.quote(typed)}")
    return " ".join(words)


def _typed(value: Any) -> str:
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    return ",".join(map(str, value)) if several else str(value)


def explain(error: MinMaxConError, options: Collection[str]) -> str:
    """Return an error's message on one line, with options, their values and remedies as the command line writes them.

    The options are the names in Python of what this command line gives, or could.
    """
    text = one_line(str(error))
    if isinstance(error, InvalidInput):
        remedy = one_line(error.remedy)
        return _argument(error, text.removesuffix(remedy), options) + _as_options(remedy, options)
    if not isinstance(error, DataError):
        return _as_options(text, options)
    remedy = one_line(error.remedy)
    text = text.removesuffix(remedy)
    if (found := _ASKED.search(text)) and found[1] in options:  # other names are those of columns
        text = f"{text[: found.start(1)]}--{found[1].replace('_', '-')}{text[found.end(1) :]}"
    return text + _as_options(remedy, options)


_ASKED = re.compile(r"\basked for by (\w+)")
"""How an error of the data names the argument that asked for what is not there."""


def _argument(error: InvalidInput, shown: str, options: Collection[str]) -> str:
    """Return the argument and its value, ``shown`` as in Python, as they are typed."""
    if error.argument not in options:
        return shown
    if error.value is None:
        value = ": "
    elif isinstance(error.value, list | tuple):
        typed = one_line(_typed(error.value))
        value = f"={typed if len(typed) <= 80 else typed[:77] + '...'}: "
    else:
        value = shown.removeprefix(error.argument)
    return f"--{error.argument.replace('_', '-')}{value}"


def _as_options(text: str, options: Collection[str]) -> str:
    """Return a text with ``engine="torch"`` as ``--engine torch`` and ``time_limit`` as ``--time-limit``.

    A name without "=" is an option only if it has an underscore: others are ordinary words. Nothing in quotes changes,
    nor what is a part of a path.
    """
    if not options:
        return text
    names = "|".join(sorted(map(re.escape, options), key=len, reverse=True))

    def typed(found: re.Match[str]) -> str:
        name, text, word = found["name"], found["text"], found["word"]
        dashed = name.replace("_", "-")
        if word in ("True", "False"):
            return f"--{dashed}" if word == "True" else f"--no-{dashed}"
        if text is not None or word is not None:
            return f"--{dashed} {shlex.quote(text) if word is None else word}"
        return f"--{dashed}" if "_" in name or found["alone"] is not None else name

    return re.sub(_WRITTEN.format(names=names), typed, text, flags=re.VERBOSE)


_WRITTEN = r"""
    (?<![\w/'"`.=-])                              # neither inside a word, a path or quotes, nor a value
    (?P<name>{names})
    (?: =(?P<quote>["'])(?P<text>.*?)(?P=quote)   # engine="torch"
      | =(?P<word>(?!None\b)[\w+-]+(?:\.\d+)?)    # rows=0, strict=True; None is what is not typed
      | (?P<alone>=)(?=[\s,;:).]|$)               # labels=
      | (?![\w/'"`(=-]|\.\w)                      # batch_size, at the end of a word
    )
"""
"""The name of an option as Python writes it, with its value or without."""


def one_line(text: str) -> str:
    """Return a text on one line, with characters that could control a terminal written as escapes."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Return a text in which tabs, ends of lines and all that could control a terminal are written as escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)

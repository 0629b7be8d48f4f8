"""Types of options that several commands share, and the one way in which errors name them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from minmaxcon.errors import InvalidInput, MinMaxConError

__all__ = ["Flag", "Whole", "explain", "names_of", "numbers_of", "one_line", "value_of", "wholes_of", "words_of"]


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


def numbers_of(option: str, text: str | None) -> float | list[float] | None:
    """Return the number or, where the text has commas, the list of numbers that it stands for.

    Parameters
    ----------
    option : str
        The option's name in Python, for the message.
    text : str or None
        What followed it.

    Raises
    ------
    InvalidInput
        A part of it is no number.
    """
    if text is None:
        return None
    numbers: list[float] = []
    for part in text.split(","):
        try:
            numbers.append(float(part))
        except ValueError:
            raise InvalidInput(
                option, text, f"{part.strip()!r} is no number; give one, or several separated by commas."
            ) from None
    return numbers if len(numbers) > 1 else numbers[0]


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


def value_of(text: str, default: Any) -> Any:
    """Return what an option of a problem stands for, whose default tells texts from numbers and switches.

    Examples
    --------
    >>> value_of("0.1", None), value_of("1,2", 0.5), value_of("2024", "loanapp"), value_of("false", True)
    (0.1, [1.0, 2.0], '2024', False)
    >>> value_of("energy,protein", ("energy",))
    ['energy', 'protein']
    """
    if isinstance(default, str):
        return text
    if isinstance(default, list | tuple):
        return [value_of(part, None) for part in text.split(",")]
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if text.lstrip("+-").isdigit():
        return int(text)
    try:
        return numbers_of("value", text)
    except InvalidInput:
        return text


def words_of(options: Mapping[str, Any]) -> str:
    """Return options as they are typed; one that is None is not given.

    Examples
    --------
    >>> words_of({"kappa": [0.05, 0.1], "data_dir": "my data", "label": None})
    "--kappa 0.05,0.1 --data-dir 'my data'"
    """
    given = {option: value for option, value in options.items() if value is not None}
    return " ".join(f"--{option.replace('_', '-')} {shlex.quote(_typed(value))}" for option, value in given.items())


def _typed(value: Any) -> str:
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    return ",".join(map(str, value)) if several else str(value)


def explain(error: MinMaxConError, options: Collection[str]) -> str:
    """Return an error's message on one line, its argument written as on the command line if it is one of the options.

    Parameters
    ----------
    error : MinMaxConError
        The error.
    options : collection of str
        The names in Python of what this command line gives, or could.
    """
    text = str(error)
    if isinstance(error, InvalidInput) and error.argument in options:
        said = text.removeprefix(error.argument)
        said = said.removeprefix("=None") if error.value is None else said
        text = f"--{error.argument.replace('_', '-')}{said}"
    return one_line(text)


def one_line(text: str) -> str:
    """Return a text on one line, with characters that could control a terminal written as escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(text.split()))

"""The entry point: commands, and the one place where errors become lines and exit statuses."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError, Parameter
from cyclopts.exceptions import UnknownOptionError, UnusedCliTokensError

import minmaxcon as mm
from minmaxcon.cli import check, compare, listing, new_problem, predict, solve, verify
from minmaxcon.cli.clock import LateError, command_clock
from minmaxcon.cli.compare import ALL
from minmaxcon.cli.options import explain, one_line, option_names, with_options
from minmaxcon.registry import command_points

__all__ = ["build_app", "main"]

DONE, NOT_DONE, BAD_INPUT = 0, 1, 2
"""Exit statuses."""

_OF_A_PROBLEM: Mapping[str, Callable[..., Any]] = {
    "solve": solve.solve,
    "compare": compare.compare,
    "check": check.check,
}
"""Commands that take the options of the problem named after them."""

_OTHERS: tuple[Callable[..., Any] | App, ...] = (
    listing.problems,
    listing.data_app,
    verify.verify,
    new_problem.new_problem,
)


def build_app(words: Sequence[str] = ()) -> App:
    """Return the commands: those built in, and those that plug-ins add, of which only the one asked for is imported.

    Of the words of the command line the first that is no option names the command, the next the problem, or the folder
    of a saved model. Raises MinMaxConError if that command is a plug-in's and cannot be imported, the problem is
    unknown or cannot be, or the folder holds no model.
    """
    app = App(
        name="minmaxcon",
        help="Constrained stochastic min-max optimization, with a certificate of what was reached.",
        help_epilogue=(
            "Exit status: 0 done; 1 not done (not solved, a check failed, a configuration failed, interrupted), the "
            "output says which; 2 bad input (one line says what)."
        ),
        version=mm.__version__,
        default_parameter=Parameter(negative=()),
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, built_in in {**_OF_A_PROBLEM, "predict": predict.predict}.items():
        if asked not in (None, name):  # its signature, which takes a while to read, is of no use
            summary = (built_in.__doc__ or "").partition("\n")[0]
            app.command(f"{built_in.__module__}:{built_in.__name__}", name=name, help=summary)
        elif name == "predict":
            app.command(with_options(built_in, *(predict.model_options(words) if asked else (None, ()))))
        else:
            app.command(with_options(built_in, _problem(words) if asked else None))
    for own in _OTHERS:
        app.command(own)
    for name, command in command_points().items():
        if name in app:
            if "--quiet" not in words:
                refusal = f"command {name!r} of {command.value} is refused: the name is that of a built-in one."
                print(f"minmaxcon: note: {refusal}", file=sys.stderr)
        elif name == asked:
            app.command(command.load(), name=name)
        else:
            summary = command.summary() or f"Of {command.value}: 'minmaxcon {name} --help' explains."
            app.command(command.value, name=name, help=summary)
    return app


def _problem(words: Sequence[str]) -> mm.ProblemPlugin | None:
    """Return the problem whose options the words may hold: by the word after the command, else by the first name."""
    place = next(place for place, word in enumerate(words) if not word.startswith("-"))
    rest = words[place + 1 :]
    if rest and not rest[0].startswith("-"):
        return None if rest[0] == ALL else mm.plugin(rest[0])
    known = mm.plugin_names()
    return next((mm.plugin(word) for word in rest if word in known), None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after the program's name; those of this process by default.

    Returns
    -------
    int
        The exit status: 0 done, 1 not done, 2 bad input.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    app = App()
    _open_streams()
    try:
        with _as_sigterm("SIGUSR1"), command_clock(words):
            app = build_app(words)
            status = app(words, verbose=False)
            sys.stdout.flush()
    except BrokenPipeError:
        _let_go()
        return NOT_DONE
    except KeyboardInterrupt:
        return _fail("interrupted before there was a result.")
    except LateError as error:
        return _fail(one_line(str(error)))
    except CycloptsError as error:
        return _refuse(_usage(error, words))
    except mm.MinMaxConError as error:
        return _refuse(explain(error, _options(app, words)))
    except OSError as error:
        if error.filename is None or not error.strerror:
            return _refuse(one_line(str(error) or type(error).__name__))
        return _refuse(one_line(f"{error.filename}: this path cannot be used ({error.strerror}); check it."))
    except MemoryError as error:
        return _refuse(one_line(str(error) or type(error).__name__))
    return status if isinstance(status, int) else DONE


@contextmanager
def _as_sigterm(name: str) -> Iterator[None]:
    """Take a signal for SIGTERM: SIGUSR1 is what schedulers of clusters send before the time of a job is over."""
    which = getattr(signal, name, None)
    if which is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(which)
    if before == signal.SIG_DFL:  # whoever ignores it, or handles it, has another use for it
        signal.signal(which, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        if before == signal.SIG_DFL:
            signal.signal(which, before)


def _let_go() -> None:
    """Leave streams whose reader has read enough: what is left in the buffers must not fail again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (OSError, ValueError):
            continue


def _open_streams() -> None:
    """Put something in the place of standard streams that are closed, as those of a daemon are."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - it stays open as long as the process


_LONG = re.compile(r"\S{300,}")
"""A word, such as a path, of which a message shows both ends."""


def _fail(message: str) -> int:
    """Say why a command did not do what was asked, although nothing is wrong with its input."""
    with suppress(BrokenPipeError):
        print(f"minmaxcon: {message}", file=sys.stderr, flush=True)
    return NOT_DONE


def _refuse(message: str) -> int:
    short = _LONG.sub(lambda word: f"{word[0][:100]}...{word[0][-100:]}", message)
    with suppress(BrokenPipeError):
        print(f"minmaxcon: error: {short}", file=sys.stderr, flush=True)
    return BAD_INPUT


def _options(app: App, words: Sequence[str]) -> set[str]:
    """Return the names in Python of all options that a command line gives, or could: the command's, the problem's."""
    given = {word[2:].partition("=")[0].replace("-", "_") for word in words if word.startswith("--")}
    command = app.parse_commands(list(words))[1][-1].default_command
    return given if command is None else given | set(option_names(command))


def _usage(error: CycloptsError, words: Sequence[str]) -> str:
    """Return on one line what is wrong with the words of the command, and where its help is."""
    commands = tuple(error.command_chain or ())
    problem = _problem(words) if commands and commands[0] in _OF_A_PROBLEM else None
    of = predict.named_folder(words) if commands == ("predict",) else None if problem is None else problem.name
    chain = " ".join(("minmaxcon", *commands, *(() if of is None else (shlex.quote(of),))))
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        word = error.unused_tokens[0]
        near = difflib.get_close_matches(word, [name for name in error.app or () if not name.startswith("-")], n=1)
        text = f"unexpected argument {word!r}." + (f" Did you mean {near[0]!r}?" if near else "")
    elif isinstance(error, UnknownOptionError) and (error.token.keyword or "").startswith("--"):
        text = _unknown_option(error)
    else:
        text = one_line(str(error))
    return f"{text} See '{chain} --help'."


def _unknown_option(error: UnknownOptionError) -> str:
    """Name an option that is not there and the nearest one, compared without the dashes, which all names share."""
    word = str(error.token.keyword)
    names = [name for argument in error.argument_collection if argument.parse for name in argument.names]
    near = difflib.get_close_matches(word[2:], [name[2:] for name in names if name.startswith("--")], n=1)
    return f"Unknown option: {one_line(word)}." + (f" Did you mean --{near[0]}?" if near else "")

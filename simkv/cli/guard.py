"""How the command line ends: errors as text on stderr, an exit code for each kind, no traceback."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from simkv.cli.interrupt import INTERRUPTED, stoppable
from simkv.errors import InputError, Problem, SimkvError

OURS = 1
DEBUG = "SIMKV_DEBUG"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NAMES = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EPERM)
"""What is wrong with a name of a file rather than with us."""
_TOLD, _LONGEST = 50, 2000
"""Problems that are told one by one, and characters of one."""


class Guarded(TyperGroup):
    """A group of commands that turns exceptions into messages and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; deliberate errors end with their own code, everything else with 1."""
        try:
            with stoppable():
                return super().invoke(ctx)
        except SimkvError as error:
            tell(error)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            print("interrupted: nothing was written", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _FULL:
                print(f"can't write: {error.strerror}; make room and run it again", file=sys.stderr)
                raise typer.Exit(InputError.exit_code) from None
            if _is_usage(error) or os.environ.get(DEBUG):
                raise
            if isinstance(error, OSError) and error.errno in _NAMES and error.filename is not None:
                problem = Problem(f"can't be used: {error.strerror}", "give another name", str(error.filename))
                tell(InputError(problem))
                raise typer.Exit(InputError.exit_code) from None
            print(f"simkv failed: {_one_line(error)}", file=sys.stderr)
            print(f"This is a fault of simkv: please report it ({DEBUG}=1 shows where it happened).", file=sys.stderr)
            raise typer.Exit(OURS) from None


def tell(error: SimkvError) -> None:
    """Print what is wrong to stderr, one line a problem."""
    problems = [str(p) for p in error.problems] if isinstance(error, InputError) else [str(error)]
    if len(problems) > 1:
        print(f"{len(problems)} problems:", file=sys.stderr)
    for line in problems[:_TOLD]:
        print(printable(_cut(line) if len(problems) == 1 else f"  {_cut(line)}"), file=sys.stderr)
    if len(problems) > _TOLD:
        print(f"  and {len(problems) - _TOLD:,} more; mend these first", file=sys.stderr)


def _cut(line: str) -> str:
    """Return ``line`` with its middle left out where it is too long to be read."""
    half = _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]} [...] {line[-half:]}"


def _is_usage(error: Exception) -> bool:
    """Say whether typer itself handles ``error`` (wrong options, exits)."""
    return type(error).__module__.partition(".")[0] in ("typer", "click")


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())[:300]
    return printable(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def printable(text: str) -> str:
    """Return ``text`` without what would confuse a terminal: control characters are written out."""
    return "".join(c if c.isprintable() or c == " " else c.encode("unicode_escape").decode() for c in text)

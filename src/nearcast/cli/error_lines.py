"""How a command ends: what went wrong as one message on stderr, and the exit code."""

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence

from typer.exceptions import Abort, TyperException

from nearcast.common.errors import NearcastError

INTERRUPTED = 130


def guarded(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; its exit code. Nothing but an exit of the process itself comes out as an exception."""
    from nearcast.cli.app import app

    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="nearcast", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except NearcastError as error:
        return say(str(error), error.exit_code)
    except TyperException as error:
        return say(usage(error), error.exit_code)
    except (KeyboardInterrupt, Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return unread()
    except SystemExit as leaving:  # Typer's own way out when nobody reads any more
        if isinstance(leaving.__context__, BrokenPipeError):
            return unread()
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            where = f" ({error.filename})" if error.filename else ""
            return say(f"the disk is full{where}: free some space and try again", 1)
        if error.filename is None or error.strerror is None:
            return say(internal(error), 1)
        return say(f"cannot use {error.filename}: {error.strerror.lower()}", 1)
    except Exception as error:
        return say(internal(error), 1)


def unread() -> int:
    """Whoever read our output has seen enough (`| head`): no error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the last flush of all complains
    return 0


def say(message: str, code: int) -> int:
    print(f"nearcast: {message}", file=sys.stderr)
    return code


def usage(error: TyperException) -> str:
    """A command that was mistyped, in one line, and where to look."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "nearcast"
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message} ({command} --help shows what can be given)"


def internal(error: Exception) -> str:
    """One line about an error that nobody foresaw; its traceback goes to a file."""
    lines = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
    try:
        handle, path = tempfile.mkstemp(prefix="nearcast-error-", suffix=".log")
        with os.fdopen(handle, "w", encoding="utf-8") as log:
            traceback.print_exception(error, file=log)
    except OSError as unwritten:
        return f"internal error: {what} (and its details could not be written: {unwritten.strerror})"
    return f"internal error: {what}, see {path}"

"""A block of bash as single commands, and what can be said of one without running it."""

import inspect
import re
import shlex
from collections.abc import Iterator
from importlib.metadata import entry_points

import typer

from nearcast.cli.app import app
from tests.docs.markdown import ROOT

ALONE = ("run", "demo", "bench")  # commands that start Spark or take long: a process of their own
_HEREDOC = re.compile(r"<<-?\s*'?(\w+)'?")
_KNOWN = ("cd", "export", "git", "pip", "python", "sh")


def commands(text: str) -> Iterator[str]:
    """The commands of a block: lines that belong together (quotes, backslashes, here-documents) as one."""
    waiting: list[str] = []
    until = None
    for line in text.splitlines():
        waiting.append(line)
        if until is None and (heredoc := _HEREDOC.search(line)):
            until = heredoc[1]
            continue
        if until is not None and line != until:
            continue
        whole = "\n".join(waiting)
        if until is None and (line.endswith("\\") or _is_open(whole)):
            continue
        until, waiting = None, []
        if _words(whole) or "<<" in whole:
            yield whole
    if waiting:
        raise ValueError(f"this command has no end: {waiting[0]}")


def plain_nearcast(command: str) -> list[str] | None:
    """The arguments of a `nearcast` command that no shell is needed for and that needs no Spark; else None."""
    if "$" in command or "`" in command or "<<" in command:
        return None
    reader = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    reader.commenters = "#"
    words = list(reader)
    if any(set(word) <= set("();<>|&") for word in words if word) or words[0] != "nearcast":
        return None
    return words[1:] if len(words) > 1 and words[1] not in ALONE else None


def is_benchmark(command: str) -> bool:
    return _words(command)[:2] == ["nearcast", "bench"]


def complaint(command: str) -> str | None:
    """What is wrong with a command that is not run: no such target, program or option."""
    for part in re.split(r"&&|\|", command):
        words = _words(part)
        program = words[0].rpartition("/")[2] if words else ""
        if program == "make":
            missing = [word for word in words[1:] if not re.search(rf"^{re.escape(word)}:", _makefile(), re.MULTILINE)]
            if missing:
                return f"the Makefile has no target {missing[0]}"
        elif program == "nearcast":
            if wrong := _wrong_option(words[1:]):
                return wrong
        elif program not in _KNOWN:
            return f"{program!r} is no command that the pages use"
    return None


def all_options() -> set[str]:
    """The options of all commands and benchmarks."""
    benchmarks = entry_points(group="nearcast.benchmarks")
    found = {option for each in benchmarks for option in _benchmark_options(each.name)}
    waiting = [typer.main.get_command(app)]
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        found |= {each for parameter in command.params for each in (*parameter.opts, *parameter.secondary_opts)}
    return found


def _makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


def _wrong_option(words: list[str]) -> str | None:
    command = typer.main.get_command(app)
    while words and hasattr(command, "commands") and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    if hasattr(command, "commands") and words:
        return f"there is no command {words[0]}"
    options = {each for parameter in command.params for each in (*parameter.opts, *parameter.secondary_opts)}
    if command.name == "bench" and words:
        options |= _benchmark_options(words[0])
    given = [word.partition("=")[0] for word in words if word.startswith("--")]
    return next((f"{command.name} has no option {each}" for each in given if each not in options), None)


def _benchmark_options(name: str) -> set[str]:
    module = entry_points(group="nearcast.benchmarks")[name].load()
    return {"--" + each.replace("_", "-") for each in inspect.signature(module.run).parameters}


def _is_open(text: str) -> bool:
    try:
        _words(text)
    except ValueError:
        return True
    return False


def _words(text: str) -> list[str]:
    return shlex.split(text.replace("\\\n", " "), comments=True)

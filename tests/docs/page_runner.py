"""Runs a page: its blocks in order, in a directory of its own, as a reader would who copies them.

- `bash` is run, `nearcast` being on the PATH; `python` is run, with one set of names for the whole page;
- `sql` is asked of the directory's `state`: each statement as a search or, where that makes no sense, a subscription;
- `json` and `toml` are read;
- `output` is compared with what the block before it printed: `…` stands for any text, alone on a line for any lines;
- `text` is only shown.

Comments right above a block change that: `<!-- as in: PAGE -->` (that page has the same block, and it is run there),
`<!-- not run: WHY -->` (its commands are checked against the Makefile and the options that there are), `<!-- run as:
COMMAND -->`, `<!-- exits with N -->`, `<!-- in the checkout -->`, `<!-- file: PATH -->` (the block is written there),
`<!-- search -->` and `<!-- subscribe -->` (that, and nothing else).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.docs.commands import commands, complaint, is_benchmark, plain_nearcast
from tests.docs.markdown import ROOT, Block, after, blocks

TIMEOUT = 600


class PageError(AssertionError):
    """A block of a page does not do what the page says."""


class Warm:
    """A Python process for the page, started when it is first needed."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.directory, self.environment = directory, environment
        self.process: subprocess.Popen[str] | None = None

    def ask(self, **request: Any) -> tuple[str, int]:
        if self.process is None:
            program = [sys.executable, str(Path(__file__).with_name("warm_python.py"))]
            self.process = subprocess.Popen(
                program, cwd=self.directory, env=self.environment, text=True, encoding="utf-8",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline() or '{"printed": "Python has ended", "exit": 1}')
        return reply["printed"], reply["exit"]

    def close(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(TIMEOUT)


class Page:
    """A page on its way through its blocks."""

    def __init__(self, directory: Path) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self.directory = directory
        self.environment = {**os.environ, "PATH": path, "PYTHONPATH": str(directory / "lib")}
        self.warm = Warm(directory, self.environment)
        self.printed = ""

    def run(self, found: list[Block]) -> None:
        try:
            for block in found:
                try:
                    self.block(block)
                except (AssertionError, ValueError) as error:
                    raise PageError(f"line {block.line}: {error}") from error
        finally:
            self.warm.close()

    def block(self, block: Block) -> None:
        if "file" in block.directives:
            path = self.directory / block.directives["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text + "\n", encoding="utf-8")
        elif "as in" in block.directives:
            page = ROOT / block.directives["as in"]
            same = [each.text for each in blocks(page.read_text(encoding="utf-8")) if each.language == block.language]
            assert block.text in same, f"{block.directives['as in']} has no such block"
        elif "not run" in block.directives:
            assert block.directives["not run"], "say why it is not run"
            for command in commands(block.text) if block.language == "bash" else ():
                check(command)
        elif block.language == "output":
            compare(block.text, self.printed)
        elif block.language != "text":
            getattr(self, block.language)(block)

    def bash(self, block: Block) -> None:
        text = block.directives.get("run as", block.text)
        code, printed = 0, []
        for command in commands(text):
            said, code = self.command(command, "in the checkout" in block.directives)
            printed.append(said)
            wanted = int(block.directives.get("exits with", 0))
            assert code == wanted, f"{command}\nleft with {code}, not {wanted}, and printed\n{said}"
        self.printed = "".join(printed)

    def command(self, command: str, in_checkout: bool = False) -> tuple[str, int]:
        if is_benchmark(command):
            check(command)
            return "", 0
        arguments = plain_nearcast(command)
        if arguments is not None:
            return self.warm.ask(nearcast=arguments)
        done = subprocess.run(
            ["bash", "-e", "-c", command], cwd=ROOT if in_checkout else self.directory, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT,
        )  # fmt: skip
        return done.stdout, done.returncode

    def python(self, block: Block) -> None:
        self.printed, code = self.warm.ask(python=block.text)
        assert code == 0, self.printed

    def sql(self, block: Block) -> None:
        printed = []
        for statement in statements(block.text):
            wanted = [each for each in ("search", "subscribe") if each in block.directives] or ["search", "subscribe"]
            tried = []
            for command in wanted:
                said, code = self.warm.ask(nearcast=[command, "--state", "state", "--", statement])
                tried.append(said)
                if code == 0:
                    printed.append(said)
                    break
            else:
                raise PageError(f"{statement}\nis neither of {wanted}:\n{''.join(tried)}")
        self.printed = "".join(printed)

    def json(self, block: Block) -> None:
        for line in block.text.splitlines():
            json.loads(line)

    def toml(self, block: Block) -> None:
        tomllib.loads(block.text)


def check(command: str) -> None:
    wrong = complaint(command)
    assert wrong is None, f"{command}: {wrong}"


def statements(text: str) -> list[str]:
    """The statements of a block of SQL: up to a semicolon or an empty line."""
    parts = re.split(r";[ \t]*(?:--[^\n]*)?\n|\n\s*\n", text.strip() + "\n")
    return [part.strip() for part in parts if re.sub(r"--[^\n]*", "", part).strip()]


def compare(shown: str, printed: str) -> None:
    """Fail where what a page shows is not what was printed, but for white space and what `…` stands for."""
    lines = [" ".join(line.split()) for line in shown.strip().splitlines()]
    pattern = "".join("(?:.*\n)*" if line == "…" else _line(line) for line in lines)
    text = "".join(" ".join(line.split()) + "\n" for line in printed.strip().splitlines())
    assert re.fullmatch(pattern, text), f"the page shows\n{shown}\nbut what was printed is\n{printed}"


def _line(shown: str) -> str:
    return ".*".join(re.escape(piece) for piece in re.split(r" ?… ?", shown)) + "\n"


class Library:
    """All pages, each run once; a page that goes on where another ended gets a copy of what that left."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.left: dict[str, Path | None] = {}  # by page; None where it failed

    def run(self, page: Path) -> Path:
        name = page.relative_to(ROOT).as_posix()
        if name not in self.left:
            self.left[name] = None
            self.left[name] = self._run(page, self.directory / name.replace("/", "_").removesuffix(".md"))
        done = self.left[name]
        assert done is not None, f"{name} has failed"
        return done

    def _run(self, page: Path, place: Path) -> Path:
        text = page.read_text(encoding="utf-8")
        before = after(text)
        if before is None:
            place.mkdir()
        else:
            shutil.copytree(self.run((page.parent / before).resolve()), place, symlinks=True)
        Page(place).run(blocks(text))
        return place

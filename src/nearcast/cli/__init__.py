"""The command line: one file a command. `main` is where it begins, and where every error becomes one clear line.

What a command needs is imported when it runs, so that `nearcast --help` is quick and a search never loads Spark.
"""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code: 0 on success, 2 on bad input, 1 on failure."""
    from nearcast.cli.error_lines import guarded

    raise SystemExit(guarded(arguments))

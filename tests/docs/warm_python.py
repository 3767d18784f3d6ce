"""A Python process that stays loaded: it runs the Python blocks and the `nearcast` commands of a page, in their order.

Each line of its input is a request, {"python": code} or {"nearcast": arguments}; each line of its output the answer,
{"printed": text, "exit": code}. Commands so take as long as what they do, not as long as Python takes to load.
"""

import contextlib
import io
import json
import os
import sys
import traceback
from typing import Any


def answer(request: dict[str, Any], names: dict[str, Any]) -> int:
    if "python" in request:
        exec(compile(request["python"], "<page>", "exec"), names)
        return 0
    from nearcast.cli import main

    try:
        main(request["nearcast"])
    except SystemExit as leaving:
        return int(leaving.code or 0)
    raise AssertionError("a command leaves with an exit code")


def serve() -> None:
    sys.path.insert(0, os.getcwd())
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print past Python must not be taken for an answer
    names: dict[str, Any] = {"__name__": "__main__"}
    for line in sys.stdin:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                code = answer(json.loads(line), names)
            except Exception:
                traceback.print_exc()
                code = 1
        out.write(json.dumps({"printed": printed.getvalue(), "exit": code}) + "\n")
        out.flush()


if __name__ == "__main__":
    serve()

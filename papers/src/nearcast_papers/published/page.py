"""docs/benchmarks.md from its template: prose, with directives in double braces where figures stand.

- `{{ headlines }}`: the README's table.
- `{{ measured NAME }}`: the command of a result, when it was measured, by which version and on what.
- `{{ figures NAME }}`: a table of its single figures.
- `{{ table NAME WHICH }}`: one of the tables of its benchmark (TABLES).
- `{{ value NAME PATH }}`: one figure inside a sentence.
"""

import re
import shlex
import textwrap
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from nearcast.common.errors import BadInput
from nearcast_papers.published import balance_tables, router_tables, topk_tables, warehouse_tables
from nearcast_papers.published.figure_lists import figure_list, headlines
from nearcast_papers.published.markdown import number, plain
from nearcast_papers.published.saved_result import SavedResult

Results = Mapping[str, SavedResult]

DIRECTIVE = re.compile(r"\{\{ (.+?) \}\}")
WIDTH = 138
TABLES: dict[str, Callable[[SavedResult], list[str]]] = {
    "checked": lambda result: router_tables.checked(result.at("compared")),
    "load": lambda result: router_tables.load(result.at("compared")),
    "plans": lambda result: balance_tables.plans(result.figures),
    "response": lambda result: warehouse_tables.response_times(result.figures),
    "repeated": lambda result: warehouse_tables.repeats(result.figures),
    "standing": lambda result: warehouse_tables.standing(result.figures),
    "indexes": lambda result: topk_tables.indexes(result.figures),
    "buffers": lambda result: topk_tables.buffers(result.figures),
    "k": lambda result: topk_tables.by_k(result.figures),
    "tuned": lambda result: topk_tables.tuned(result.figures),
}
README_BLOCK = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- /figures -->)", re.DOTALL)


def page(results: Results) -> str:
    """The whole page."""
    template = files("nearcast_papers.published").joinpath("page.md").read_text(encoding="utf-8")
    return DIRECTIVE.sub(lambda found: directive(results, found[1]), template)


def directive(results: Results, text: str) -> str:
    what, *words = text.split(maxsplit=2)
    if what == "headlines":
        return "\n".join(headlines(results))
    if not words or words[0] not in results:
        raise BadInput(f"{{{{ {text} }}}} names no saved result: there is {', '.join(results)}")
    result = results[words[0]]
    made: dict[str, Callable[..., Any]] = {
        "measured": lambda: measured(result),
        "figures": lambda: "\n".join(figure_list(result)),
        "table": lambda which: "\n".join(TABLES[which](result)),
        "value": lambda path: number(plain(result.at(path))),
    }
    if what not in made:
        raise BadInput(f"{{{{ {text} }}}}: there is no directive {what}")
    return str(made[what](*words[1:]))


def measured(result: SavedResult) -> str:
    """The command, and what there is to know of its run."""
    about = [f"Measured {result.measured}."]
    if result.entered:
        about.append("Entered from the documentation of that version.")
    if "note" in result.content:
        about.append(str(result.content["note"]))
    return f"```bash\n{wrapped(result.command)}\n```\n\n{textwrap.fill(' '.join(about), WIDTH, break_on_hyphens=False)}"


def wrapped(command: str) -> str:
    """A command in lines that are not too wide, as a shell takes them."""
    lines, line = [], ""
    for word in (shlex.quote(each) for each in shlex.split(command)):
        if line and len(line) + len(word) + 3 > WIDTH:
            lines.append(f"{line} \\")
            line = "    " + word
        else:
            line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])


def with_figures(readme: str, results: Results) -> str:
    """A README with its table made anew, which stands between two comments."""
    if not README_BLOCK.search(readme):
        raise BadInput("the README has no <!-- figures --> … <!-- /figures -->")
    return README_BLOCK.sub(lambda _: "\n".join(headlines(results)) + "\n", readme)

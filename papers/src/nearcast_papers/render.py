"""Make docs/benchmarks.md, its plots and the README's table of figures from the saved results under docs/benchmarks.

python -m nearcast_papers.render [ROOT]     # a checkout; the current directory unless given
"""

import sys
from pathlib import Path

from nearcast.common.errors import BadInput
from nearcast_papers.published.page import page, with_figures
from nearcast_papers.published.pictures import draw_all
from nearcast_papers.published.saved_result import read_all


def render(root: Path) -> list[Path]:
    """What it has written."""
    docs, readme = root / "docs", root / "README.md"
    results = read_all(docs / "benchmarks")
    texts = {docs / "benchmarks.md": page(results)}
    texts[readme] = with_figures(readme.read_text(encoding="utf-8"), results)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return [*texts, *draw_all(docs, results)]


def main() -> None:
    try:
        for path in render(Path(sys.argv[1] if len(sys.argv) > 1 else ".")):
            print(path)
    except BadInput as error:
        raise SystemExit(f"render: {error}") from None


if __name__ == "__main__":
    main()

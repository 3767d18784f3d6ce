"""`nearcast topics train`, `show`: models of what posts are about, for `nearcast run --derive topic=FILE`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.deferred import loading
from nearcast.cli.options import Format, FormatOption, mapping
from nearcast.common.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

topics = typer.Typer(
    name="topics",
    help="Models of what posts are about, for nearcast run --derive topic=FILE.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def option(name: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(name, help=help, metavar=metavar, **more)


@topics.command()
def train(
    posts: Annotated[list[str], option("--posts", "Files or folders of posts, or world:seed=1,count=100000.", "SRC")],
    out: Annotated[Path, option("--out", "The file of the model; npz.", "FILE")],
    number: Annotated[int, option("--topics", "How many topics.", min=2, max=10_000)] = 50,
    most: Annotated[int, option("--most", "Learn from the first so many posts.", min=1)] = 500_000,
    words: Annotated[int, option("--words", "In the vocabulary, the most frequent ones.", min=2)] = 20_000,
    passes: Annotated[int, option("--passes", "Over the posts.", min=1)] = 5,
    seed: Annotated[int, option("--seed", "The same posts and seed give the same model.", min=0)] = 0,
    keep_accents: Annotated[bool, option("--keep-accents/--fold-accents", "Whether café is not cafe.")] = False,
    map_: Annotated[list[str] | None, option("--map", "Names of fields in the files.", "text=comments,…")] = None,
) -> None:
    """Learn topics from posts (latent Dirichlet allocation, by scikit-learn: pip install 'nearcast\\[topics]').

    [dim]nearcast topics train --posts posts/ --topics 50 --out topics.npz

    nearcast run --posts posts/ --state state --derive topic=topics.npz

    nearcast search --state state "SELECT Count(id), topic FROM stream GROUP BY topic"[/dim]
    """
    with loading():
        from nearcast.cli.tables import messages
        from nearcast.common.text.tokenizer import Tokenizer
        from nearcast.sources.derive.train_topics import train as learn
    if not out.parent.is_dir():
        raise BadInput(f"--out {out}: there is no folder {out.parent}")
    tables = _tables(posts, mapping(map_ or []), most)
    with _progress() as progress:
        model = learn(tables, number, most, words, passes, seed, Tokenizer(keep_accents=keep_accents), progress)
    model.save(out)
    messages().print(
        f"{out}: {number} topics, {len(model.terms):,} words; nearcast topics show {out}", soft_wrap=True, markup=False
    )


@topics.command()
def show(
    model: Annotated[Path, typer.Argument(metavar="FILE", help="A model.")],
    words: Annotated[int, option("--words", "How many of each topic.", min=1)] = 10,
    form: FormatOption = Format.table,
) -> None:
    """List the topics of a model, each with the words that it wants most."""
    from nearcast.cli.tables import print_rows
    from nearcast.sources.derive.topic import Topic

    rows = ({"topic": number, "words": " ".join(top)} for number, top in enumerate(Topic.load(model).top_words(words)))
    print_rows(rows, form, ("topic", "words"))


def _tables(specs: list[str], names: dict[str, str], most: int) -> "Iterator[pa.Table]":
    """The first posts of sources, one after the other."""
    import tempfile

    from nearcast.sources.protocol import SourceContext
    from nearcast.sources.records import posts_of
    from nearcast.sources.registry import open_source

    for spec in specs:
        with tempfile.TemporaryDirectory() as folder:
            source = open_source(spec, SourceContext(state=Path(folder), mapping=names))
            start = source.beginning()
            stop = source.advance(start, source.limit(start, drain=True), most)
            for split in source.splits(start, stop, 1):
                for posts, _ in posts_of(split.read(), names):
                    yield posts
            source.close()


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal; elsewhere a line for each tenth."""
    from rich.progress import Progress

    from nearcast.cli.tables import messages

    console = messages()
    if not console.is_terminal:
        told: dict[str, int] = {}

        def line(doing: str, done: int, of: int) -> None:
            if done * 10 // of > told.get(doing, -1):
                told[doing] = done * 10 // of
                console.print(f"{doing}: {done:,} of {of:,}")

        yield line
        return
    with Progress(console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def bar(doing: str, done: int, of: int) -> None:
            if doing not in tasks:
                tasks[doing] = bars.add_task(doing, total=of)
            bars.update(tasks[doing], completed=done, total=of)

        yield bar

"""All commands under one name."""

from typing import Annotated

import typer

from nearcast.cli import bench_command as bench
from nearcast.cli import demo_command as demo
from nearcast.cli import ops_command as ops
from nearcast.cli import plan_command as plan
from nearcast.cli import region_command as regions
from nearcast.cli import results_command as results
from nearcast.cli import run_command as run
from nearcast.cli import search_command as search
from nearcast.cli import status_command as status
from nearcast.cli import topics_command as topics

app = typer.Typer(
    name="nearcast",
    help="Standing and one-off questions about streams of geo-tagged text.",
    epilog="First steps: nearcast demo, then nearcast results --state DIR with the directory it names.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"nearcast {version('nearcast')}")
        raise typer.Exit


@app.callback()
def _nearcast(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


app.command()(demo.demo)
app.command()(run.run)
app.command()(search.search)
app.command()(ops.subscribe)
app.command()(ops.unsubscribe)
app.command()(ops.subscriptions)
app.add_typer(regions.region)
app.add_typer(topics.topics)
app.command()(results.results)
app.command()(status.status)
app.command()(plan.plan)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(bench.bench)

"""`nearcast region add`, `list`, `remove`: names for regions."""

from typing import Annotated

import typer

from nearcast.cli.options import Format, FormatOption, StateOption, existing
from nearcast.common.errors import BadInput

region = typer.Typer(
    name="region",
    help="Names for regions, which any question can use: loc INSIDE downtown.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of the region.")]


@region.command()
def add(
    name: NameArgument,
    text: Annotated[str, typer.Argument(metavar='"RECT(…)"', help="RECT(…), CIRCLE(…) or POLYGON('WKT').")],
    state: StateOption,
) -> None:
    """Give a region a name, or a name another region. Searches use the new one from now on; a subscription keeps the
    region that the name stood for when the run took it up, until it is subscribed again.

    [dim]nearcast region add --state state downtown "RECT(-74.02, 40.70, -73.97, 40.75)"

    nearcast search --state state "SELECT Count(id), hour FROM stream WHERE loc INSIDE downtown GROUP BY hour"[/dim]
    """
    from nearcast.cli.tables import messages
    from nearcast.storage.directory import StateDirectory
    from nearcast.storage.named_regions import Regions

    directory = StateDirectory(state)
    new = not directory.exists()
    if new:
        directory.refuse_if_not_a_state()
    before = Regions(state).add(name, text)
    if new:
        messages().print(
            f"{state} has no posts yet: the name waits there for nearcast run --state {state}",
            markup=False,
            soft_wrap=True,
        )
    if before is not None and before != text:
        messages().print(f"{name} was {before}", style="dim", markup=False)


@region.command("list")
def list_(state: StateOption, form: FormatOption = Format.table) -> None:
    """List the names and their regions."""
    from nearcast.cli.tables import print_rows
    from nearcast.storage.named_regions import Regions

    regions = Regions(state)
    if not regions.path.exists():
        existing(state)
    rows = ({"name": name, "region": text} for name, text in sorted(regions.texts().items()))
    print_rows(rows, form, ("name", "region"))


@region.command()
def remove(name: NameArgument, state: StateOption) -> None:
    """Forget a name. Subscriptions that used it keep their region."""
    from nearcast.language.messages import nearest
    from nearcast.storage.named_regions import Regions

    regions = Regions(state)
    if not regions.path.exists():
        existing(state)
    try:
        regions.remove(name)
    except KeyError:
        meant = nearest(name, regions)
        hint = f": did you mean {meant}?" if meant else ""
        raise BadInput(f"there is no region {name}{hint or ' (nearcast region list shows those there are)'}") from None

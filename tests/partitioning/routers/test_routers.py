"""Every router that there is, and partitions of every kind made by hand, on every world of the conformance suite."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nearcast.common.errors import BadInput
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.routers.registry import build, routers
from tests.partitioning.routers.conformance import (
    WORLDS,
    check_saving,
    check_shape,
    filed_rows,
    hold,
    same,
    sample_of,
    strangers,
)
from tests.partitioning.routers.made import MADE
from tests.storage.cases import columns_of

ROUTERS: dict[str, Callable[..., Partition]] = {**routers(), **MADE}
MANY = 40  # more than some routers make leaves


@pytest.mark.parametrize("world", list(WORLDS))
@pytest.mark.parametrize("name", list(ROUTERS))
def test_no_query_misses_a_post_or_gets_it_twice(name: str, world: str) -> None:
    subscriptions, posts = WORLDS[world]()
    rows, columns = filed_rows(subscriptions), columns_of(posts)
    for workers in (1, 3, MANY) if world == "crowded" else (3,):
        partition = ROUTERS[name](sample_of(rows, columns), workers)
        check_shape(partition, workers)
        found = hold(partition, rows, columns, workers)
        if world in ("crowded", "many words", "edges of the world"):
            assert found > 50


@pytest.mark.parametrize("name", list(ROUTERS))
def test_posts_and_queries_that_no_sample_has_shown_are_routed_alike(name: str) -> None:
    rows, columns = filed_rows(WORLDS["many words"]()[0]), columns_of(WORLDS["many words"]()[1])
    partition = ROUTERS[name](sample_of(rows, columns), 3)
    later = filed_rows(WORLDS["crowded"]()[0])
    assert hold(partition, later, columns_of(strangers(9)), 3) > 20
    assert hold(partition, later, columns_of(strangers(9)), 5) > 20  # and with another number of workers


@pytest.mark.parametrize("name", list(ROUTERS))
def test_the_same_sample_gives_the_same_partition_and_a_file_gives_it_back(name: str, tmp_path: Path) -> None:
    subscriptions, posts = WORLDS["many words"]()
    sample = sample_of(filed_rows(subscriptions), columns_of(posts))
    partition = ROUTERS[name](sample, 4)
    assert same(partition, ROUTERS[name](sample, 4))
    check_saving(partition, tmp_path / "router.arrow")


def test_a_router_is_known_by_the_name_it_was_asked_for_by() -> None:
    subscriptions, posts = WORLDS["a world of two posts"]()
    sample = sample_of(filed_rows(subscriptions), columns_of(posts))
    assert {name: build(name, sample, 2).name for name in routers()} == {name: name for name in routers()}
    with pytest.raises(BadInput, match="there is no router 'magic'"):
        build("magic", sample, 2)

"""The tables of `bench topk`."""

from typing import Any

from nearcast_papers.benchmarks.topk_plot import INDEXES, POLICIES
from nearcast_papers.published.markdown import number, table

BUFFERS = {**POLICIES, "ciq_kmax": "CIQ-kmax"}


def indexes(figures: dict[str, Any]) -> list[str]:
    """Indexes of subscribers."""
    titles = {
        "us_a_post": "core-µs a post", "looked_a_post": "pairs looked at a post",
        "bytes_a_subscriber": "bytes a subscriber", "build_s": "build, core-s",
    }  # fmt: skip
    found = figures["dissemination"]
    rows = [(title, *(number(found[name][column]) for name in INDEXES)) for column, title in titles.items()]
    return table(("", *INDEXES.values()), rows)


def buffers(figures: dict[str, Any]) -> list[str]:
    """Buffer policies with arrivals and expiries."""
    found = {name: figures["reevaluation"][name] for name in BUFFERS}
    rows = [
        ("core-µs a post: arrival + expiry",
         *(f"{number(each['arrival_us'])} + {number(each['expiry_us'])}" for each in found.values())),
        ("posts in a buffer", *(_cell(each, "buffer") for each in found.values())),
        ("filling, core-µs a subscriber", *(_cell(each, "filling_us_a_subscriber") for each in found.values())),
    ]  # fmt: skip
    return table(("", *BUFFERS.values()), rows)


def by_k(figures: dict[str, Any]) -> list[str]:
    """What k changes: posts in a buffer and refills a post."""
    rows = []
    for name, title in (("skype", "cSkyband"), ("ciq_kmax", "kmax")):
        for column, what in (("buffer", "posts in a buffer"), ("refills_a_post", "refills a post")):
            rows.append((f"{title}: {what}", *(number(each[name][column]) for each in figures["k"].values())))
    return table(("", *(f"k = {k}" for k in figures["k"])), rows)


def tuned(figures: dict[str, Any]) -> list[str]:
    """Buffers of fixed length, of a fixed ratio, and of the cost model."""
    found = {f"kmax {name}": each for name, each in figures["kmax"].items() if name != "cskyband"}
    found |= {f"Skyband {name}": each for name, each in figures["ratio"].items() if name != "cskyband"}
    found["cSkyband"] = figures["kmax"]["cskyband"]
    titles = {
        "buffer": "posts in a buffer", "refills_a_post": "refills a post", "pairs_a_post": "pairs a post",
    }  # fmt: skip
    rows = [(title, *(number(each[column]) for each in found.values())) for column, title in titles.items()]
    return table(("", *found), rows)


def _cell(each: dict[str, Any], name: str) -> str:
    return number(each[name]) if name in each else ""

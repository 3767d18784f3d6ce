"""Query text → query: one SELECT for every kind of question, and errors that point at the word.

The way of a text: `syntax` reads it by `grammar` into nodes that know their place; `parser` finds the kind that claims
it (`known_kinds`, `common.kinds`), whose role (`roles`) says what it means, with `where` for the WHERE that all kinds
share and `places`, `times` and `keywords` for its parts; `checks` tells searches from subscriptions, with `locate` to
find the word; `dnf` and `encode` make of the meaning the columns that travel to the workers. What some kinds share is
in `posts`, `topk` and `standing_times`. `messages` is how every one of them complains.
"""

from nearcast.language.checks import check_attributes, check_kinds, check_numbers, check_search, check_subscription
from nearcast.language.dnf import to_dnf
from nearcast.language.encode import decode_code, encode_conditions, encode_query
from nearcast.language.keywords import parse_contains
from nearcast.language.parser import parse
from nearcast.language.places import parse_region

__all__ = [
    "check_attributes",
    "check_kinds",
    "check_numbers",
    "check_search",
    "check_subscription",
    "decode_code",
    "encode_conditions",
    "encode_query",
    "parse",
    "parse_contains",
    "parse_region",
    "to_dnf",
]

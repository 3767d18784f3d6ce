"""The vocabulary, compiled: every string a text can be made of, and where in a sentence it may stand.

A text is a row of *pieces* (opener, sentence, closer, byline, decoration), a piece is a row of strings and slots, and a
slot is filled from a list of strings that depends on the post: on its language and topic, its city, its spot. All of it
is flat arrays, so that texts are assembled for thousands of posts at once (`texts`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nearcast.sources.world import english
from nearcast.sources.world.bursts import EVENT_SUFFIX
from nearcast.sources.world.cities import CITIES
from nearcast.sources.world.geography import TOWNS, district_count
from nearcast.sources.world.languages import LANGUAGES
from nearcast.sources.world.names import invent

Integers = npt.NDArray[np.int64]

TOPICS: tuple[english.Topic, ...] = english.TOPICS + english.EVENTS
LANGUAGE_CODES: tuple[str, ...] = ("en", *(language.code for language in LANGUAGES))
NUMBERS = (2, 3, 5, 10, 4, 20, 30, 6, 15, 7, 40, 8, 50, 12, 9, 25, 45, 60, 90)
USERS = 60_000
MENTIONED = 2_000  # users famous enough to be mentioned
SMALLEST = 20_000

# Each slot and what of the post chooses the list that fills it.
SLOTS: dict[str, str] = {
    "n": "phrase", "a": "phrase", "tag": "phrase", "emoji": "topic", "city": "place", "citytag": "place",
    "place": "city", "district": "spot", "name": "all", "num": "all", "time": "all", "user": "all", "url": "all",
    "event": "event", "star": "star",
}  # fmt: skip
SLOT_CODE = {slot: -1 - index for index, slot in enumerate(SLOTS)}


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of items, drawn from by rank with density 1 / (skew + rank): Zipf, flattened at the top by `skew`."""

    start: Integers
    size: Integers
    items: npt.NDArray[np.int32]
    skew: float

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]], skew: float) -> "Lists":
        rows = [list(row) for row in lists]
        size = np.array([len(row) for row in rows], np.int64)
        return cls(np.cumsum(size) - size, size, np.array([i for row in rows for i in row], np.int32), skew)

    def pick(self, groups: Integers, uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        """For each group, one item of its list, by a number in [0, 1)."""
        rank = self.skew * np.expm1(uniform * np.log1p(self.size / self.skew)[groups])
        return self.items[self.start[groups] + np.minimum(rank.astype(np.int64), self.size[groups] - 1)]


@dataclass(frozen=True, eq=False)
class WorldVocabulary:
    strings: pa.StringArray
    piece_start: Integers
    piece_size: Integers
    piece_codes: npt.NDArray[np.int32]  # a string, or below 0 a slot
    sentences: Lists  # by phrase = language * topics + topic; empty where the language lacks the topic
    openers: Lists  # by language
    closers: Lists  # by language
    bylines: Lists  # one list, of any language
    decorations: Lists  # 0 for posts, 1 for posts of an event
    fillings: dict[str, Lists]  # by slot
    first_user: int
    names: int  # how many names there are that all cities know


class _Builder:
    """Collects strings and pieces, each once."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        self.pieces: list[list[int]] = [[]]  # piece 0 is empty

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def all(self, texts: Iterable[str]) -> list[int]:
        return [self.string(text) for text in texts]

    def piece(self, template: str) -> int:
        parts = re.split(r"\{(\w+)\}", template)
        codes = [SLOT_CODE[part] if i % 2 else self.string(part) for i, part in enumerate(parts) if part]
        self.pieces.append(codes)
        return len(self.pieces) - 1

    def lines(self, templates: str) -> list[int]:
        return [self.piece(line) for line in templates.splitlines()]

    def parts(self, templates: str) -> list[int]:
        return [self.piece(part) for part in templates.split(";")]


def _comma(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _tags(words: Iterable[str]) -> list[str]:
    return [word.replace(" ", "") for word in words]


@cache
def vocabulary(size: int) -> WorldVocabulary:
    """The vocabulary of about `size` distinct words: the real ones, and as many invented names as are missing."""
    build = _Builder()
    sentences, nouns, adjectives = _phrases(build)
    emoji = [build.all(topic.emoji.split()) for topic in TOPICS]
    openers = [build.parts(part) for part in (english.OPENERS, *(language.openers for language in LANGUAGES))]
    closers = [build.parts(part) for part in (english.CLOSERS, *(language.closers for language in LANGUAGES))]
    decorations = [
        build.parts(
            " #{tag}; #{tag} #{citytag}; {emoji}; #{citytag}; {emoji}{emoji}; @{user}; {url}; #{tag} {url};"
            " @{user} {emoji}"
        ),
        build.parts(" #{event}; #{event} {emoji}; #{event} #{citytag}; {emoji}; #{event} {url}"),
    ]
    bylines = build.parts(
        " w/ {name}; @ {place}; - {name} {name}; via {name}; ({name} x {name}); w/ {name}, {name} & {name}; / {place};"
        " @ {place} {place}; [{name}]; feat. {name} {name}; + {name} + {name}"
    )
    real = set(re.findall(r"\w+", " ".join(build.strings).casefold()))
    local, towns, names, handles = _invented(size, real)
    words = {i: text for text, i in build.strings.items()}
    tags = [build.all(_tags(words[i] for i in row)) for row in nouns]
    first_user = len(build.strings)
    users = build.all(handles)
    rng = np.random.default_rng(7)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789"))
    urls = ["https://t.co/" + "".join(row) for row in letters[rng.integers(36, size=(4096, 9))]]
    fillings = {
        "n": Lists.of(nouns, 2.0),
        "a": Lists.of(adjectives, 3.0),
        "tag": Lists.of(tags, 2.0),
        "emoji": Lists.of(emoji, 2.0),
        "city": Lists.of([[i] for i in build.all([c.name for c in CITIES] + [t.capitalize() for t in towns])], 1.0),
        "citytag": Lists.of([[i] for i in build.all([c.tag for c in CITIES] + towns)], 1.0),
        "place": Lists.of([build.all(name.capitalize() for name in row) for row in local], 8.0),
        "district": Lists.of(_districts(build, local, towns), 1.0),
        "name": Lists.of([build.all(name.capitalize() for name in names)], 300.0),
        "star": Lists.of([[i] for i in build.all(name.capitalize() for name in names)], 1.0),
        "num": Lists.of([build.all(map(str, NUMBERS))], 3.0),
        "time": Lists.of([build.all(f"{h}:{m}" for m in ("00", "30", "15", "45") for h in range(6, 24))], 20.0),
        "user": Lists.of([users[:MENTIONED]], 10.0),
        "url": Lists.of([build.all(urls)], 4096.0),
        "event": Lists.of([[build.string(c.tag + EVENT_SUFFIX[e.name])] for c in CITIES for e in english.EVENTS], 1.0),
    }
    piece_size = np.array([len(piece) for piece in build.pieces], np.int64)
    return WorldVocabulary(
        strings=pa.array(list(build.strings), pa.string()),
        piece_start=np.cumsum(piece_size) - piece_size,
        piece_size=piece_size,
        piece_codes=np.array([code for piece in build.pieces for code in piece], np.int32),
        sentences=Lists.of(sentences, 4.0),
        openers=Lists.of(openers, 4.0),
        closers=Lists.of(closers, 4.0),
        bylines=Lists.of([bylines], 8.0),
        decorations=Lists.of(decorations, 4.0),
        fillings=fillings,
        first_user=first_user,
        names=len(names),
    )


def _phrases(build: _Builder) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """(sentences, nouns, adjectives) by phrase."""
    sentences = [build.lines(topic.sentences) for topic in TOPICS]
    nouns = [build.all(_comma(topic.nouns)) for topic in TOPICS]
    adjectives = [build.all(_comma(topic.adjectives) + _comma(english.ADJECTIVES)) for topic in TOPICS]
    for language in LANGUAGES:
        by_topic = {name: _comma(words) for name, words in (line.split(": ") for line in language.nouns.splitlines())}
        usual, alarms = build.lines(language.sentences), build.lines(language.alarms)
        kinds = {"earthquake": alarms, "flood": alarms, "fire": usual + alarms}
        for topic in TOPICS:
            known = topic.name in by_topic
            sentences.append(kinds.get(topic.name, usual) if known else [])
            nouns.append(build.all(by_topic[topic.name]) if known else [])
            adjectives.append(build.all(_comma(language.adjectives)))
    return sentences, nouns, adjectives


def _invented(size: int, real: set[str]) -> tuple[list[list[str]], list[str], list[str], list[str]]:
    """(words of each city, names of the towns, names known everywhere, handles of the users)."""
    rng = np.random.default_rng(42)
    taken = real | {city.tag for city in CITIES}
    room = size - len(taken) - TOWNS
    breadth = np.array([city.people for city in CITIES]) ** 0.5
    counts = np.array([district_count(i) + 6 for i in range(len(CITIES))])
    counts += (breadth / breadth.sum() * max(0, room * 0.45 - counts.sum())).astype(np.int64)
    by_language: dict[str, list[str]] = {}
    for code in LANGUAGE_CODES:
        total = int(sum(counts[i] for i, city in enumerate(CITIES) if city.language == code))
        pool = invent(total, code, rng, taken)
        by_language[code] = [pool[i] for i in rng.permutation(total)]
    local = [[by_language[city.language].pop() for _ in range(counts[i])] for i, city in enumerate(CITIES)]
    towns = invent(TOWNS, "en", rng, taken)
    each = (room - int(counts.sum())) // len(LANGUAGE_CODES) + 1
    pools = [invent(each, code, rng, taken) for code in LANGUAGE_CODES]
    names = [name for group in zip(*pools, strict=True) for name in group]
    handles = [f"{names[i % len(names)]}{i // len(names) + 1}" for i in range(USERS)]
    return local, towns, names, handles


def _districts(build: _Builder, local: list[list[str]], towns: list[str]) -> list[list[int]]:
    """The name of each spot: the first words of a city are its districts, a town's is its own."""
    names = [local[city][d] for city in range(len(CITIES)) for d in range(district_count(city))] + towns
    return [[build.string(name.capitalize())] for name in names]

"""Keyword expressions: what a text must, may and must not contain.

A leaf is a `Phrase`: one or more terms in a row. A word that the tokeniser cuts in several ("wi-fi", a word in
Chinese) is a phrase of its parts, so one notion serves words, phrases and scripts without spaces.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Phrase:
    """The terms (64-bit ids) that must follow each other in a text, and the words they stand for."""

    terms: tuple[int, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class And:
    parts: tuple["Expression", ...]


@dataclass(frozen=True)
class Or:
    parts: tuple["Expression", ...]


@dataclass(frozen=True)
class Not:
    part: "Expression"


Expression = Phrase | And | Or | Not


@dataclass(frozen=True)
class Literal:
    """A phrase that must be there, or must not."""

    terms: tuple[int, ...]
    negative: bool = False


Conjunction = tuple[Literal, ...]

"""Keyword expressions as a disjunction of conjunctions, the form in which they are filed and matched.

A conjunction under work is one Python integer: bit 2i stands for literal i, bit 2i + 1 for its negation. So joining
two is `|`, implication is a mask test, and a contradiction is two neighbouring bits.
"""

from collections.abc import Iterable, Iterator

from nearcast.common.errors import QueryError
from nearcast.common.expressions import And, Conjunction, Expression, Literal, Not, Or, Phrase

MOST_ALTERNATIVES = 64


def to_dnf(expression: Expression, limit: int = MOST_ALTERNATIVES) -> tuple[Conjunction, ...]:
    """The alternatives of `expression`, each a conjunction of distinct literals in their order of appearance.

    No alternative contradicts itself or implies another one. `()` matches nothing, `((),)` everything. Raises
    QueryError once an expression, or a part of it, has more than `limit` alternatives; no more than limit² are ever
    looked at for one pair of parts.
    """
    numbers = {terms: number for number, terms in enumerate(dict.fromkeys(_phrases(expression)))}
    alternatives = _Work(numbers, limit).alternatives(expression, False)
    both = [Literal(terms, negative) for terms in numbers for negative in (False, True)]
    return tuple(tuple(both[bit] for bit in _bits(mask)) for mask in _resolved(alternatives, limit))


def _phrases(expression: Expression) -> Iterator[tuple[int, ...]]:
    match expression:
        case Phrase(terms=terms):
            yield terms
        case Not(part=part):
            yield from _phrases(part)
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from _phrases(part)


class _Work:
    def __init__(self, numbers: dict[tuple[int, ...], int], limit: int) -> None:
        self._numbers, self._limit = numbers, limit
        self._positive = (4 ** len(numbers) - 1) // 3  # the even bits

    def alternatives(self, expression: Expression, negated: bool) -> list[int]:
        match expression:
            case Phrase(terms=terms):
                if not terms:  # no words in a row are in every text
                    return [] if negated else [0]
                return [1 << 2 * self._numbers[terms] + negated]
            case Not(part=inner):
                return self.alternatives(inner, not negated)
        parts = [self.alternatives(part, negated) for part in expression.parts]
        if isinstance(expression, Or) != negated:  # De Morgan
            return _irredundant((mask for part in parts for mask in part), self._limit)
        product = [0]
        for part in sorted(parts, key=len):
            joined = list(self._joined(product, part))
            if joined != product:
                product = _irredundant(joined, self._limit)
        return product

    def _joined(self, left: list[int], right: list[int]) -> Iterator[int]:
        for mask in left:
            if any(mask & other == other for other in right):  # it implies the right side as it is
                yield mask
                continue
            for joined in (mask | other for other in right):
                if not joined & joined >> 1 & self._positive:
                    yield joined


def _irredundant(masks: Iterable[int], limit: int) -> list[int]:
    """The masks that imply no other one."""
    kept: list[int] = []
    for mask in masks:
        if any(mask & other == other for other in kept):
            continue
        kept = [other for other in kept if other & mask != mask]
        kept.append(mask)
        if len(kept) > limit:
            raise QueryError(
                f"this expression becomes more than {limit} alternatives; "
                "use fewer words in OR, or split it into several queries"
            )
    return kept


def _resolved(masks: list[int], limit: int) -> list[int]:
    """`x OR (NOT x AND y)` is `x OR y`: drops from every alternative what a single literal beside it denies."""
    while True:
        denied = 0
        for mask in masks:
            if mask.bit_count() == 1:
                denied |= mask << 1 if mask.bit_length() % 2 else mask >> 1
        smaller = _irredundant((mask & ~denied for mask in masks), limit)
        if smaller == masks:
            return masks
        masks = smaller


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1

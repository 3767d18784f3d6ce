"""A disjunction of conjunctions says what its expression says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import QueryError
from nearcast.common.expressions import And, Literal, Not, Or, Phrase
from nearcast.language.dnf import to_dnf
from nearcast.language.encode import decode_code, encode_expression

A, B, C, D = (Phrase((term,), (word,)) for term, word in enumerate("abcd", start=1))
AB = Phrase((1, 2), ("a", "b"))


def literal(phrase):
    return Literal(phrase.part.terms, True) if isinstance(phrase, Not) else Literal(phrase.terms)


def alternatives(*conjunctions):
    return tuple(tuple(map(literal, each)) for each in conjunctions)


def true_of(expression, text):
    """The definition: `text` is a tuple of terms."""
    match expression:
        case Phrase(terms=terms):
            return any(text[at : at + len(terms)] == terms for at in range(len(text) + 1))
        case And(parts=parts):
            return all(true_of(part, text) for part in parts)
        case Or(parts=parts):
            return any(true_of(part, text) for part in parts)
        case Not(part=part):
            return not true_of(part, text)


def any_true_of(conjunctions, text):
    return any(all(true_of(Phrase(each.terms, ()), text) != each.negative for each in conj) for conj in conjunctions)


@pytest.mark.parametrize(
    ("expression", "meaning"),
    [
        (A, alternatives([A])),
        (Not(A), alternatives([Not(A)])),
        (And((A, B, Not(C))), alternatives([A, B, Not(C)])),
        (And((A, Or((B, C)))), alternatives([A, B], [A, C])),
        (Not(And((A, Or((B, C))))), alternatives([Not(A)], [Not(B), Not(C)])),
        (And((A, Not(A))), ()),
        (Or((And((A, Not(A))), B)), alternatives([B])),
        (And((A, A)), alternatives([A])),
        (Or((A, B, A)), alternatives([A], [B])),
        (Or((A, And((A, B)))), alternatives([A])),
        (And((A, Or((A, B)))), alternatives([A])),
        (And((AB, Not(A))), alternatives([AB, Not(A)])),
        (Or((A, And((Not(A), B)))), alternatives([A], [B])),
        (Or((A, Not(A))), ((),)),
        (Or((And((A, B)), Not(A), Not(B))), ((),)),
        (Not(And((A, Not(A)))), ((),)),
        (And(()), ((),)),
        (Or(()), ()),
        (Not(Or(())), ((),)),
        (Not(Phrase((), ())), ()),
    ],
)
def test_an_expression_becomes_alternatives(expression, meaning):
    assert to_dnf(expression) == meaning


expressions = st.recursive(
    st.sampled_from([A, B, C, D, AB, Phrase((2, 2), ("b", "b"))]),
    lambda parts: st.one_of(
        parts.map(Not),
        st.lists(parts, min_size=1, max_size=4).map(lambda chosen: And(tuple(chosen))),
        st.lists(parts, min_size=1, max_size=4).map(lambda chosen: Or(tuple(chosen))),
    ),
    max_leaves=15,
)


@settings(max_examples=150, deadline=None)
@given(expressions, st.lists(st.lists(st.integers(1, 4), max_size=6).map(tuple), min_size=1, max_size=20))
def test_alternatives_and_code_say_what_the_expression_says(expression, texts):
    conjunctions = to_dnf(expression, 1_000)
    code = encode_expression(expression)
    decoded = () if code is None else decode_code(code)
    assert [any_true_of(conjunctions, text) for text in texts] == [true_of(expression, text) for text in texts]
    assert {frozenset(each) for each in decoded} == {frozenset(each) for each in conjunctions}
    for each in conjunctions:
        assert not any(Literal(literal.terms, not literal.negative) in each for literal in each)
        assert not any(set(other) < set(each) for other in conjunctions)


def words(count, letter="w"):
    return [Phrase((hash((letter, number)) & 0xFFFF_FFFF,), (letter,)) for number in range(count)]


def test_as_many_alternatives_as_the_limit_are_fine():
    assert len(to_dnf(Or(tuple(words(64))))) == 64
    with pytest.raises(QueryError, match="more than 64 alternatives"):
        to_dnf(Or(tuple(words(65))))


def test_exponentially_many_alternatives_are_noticed_at_once():
    pairs = tuple(Or(pair) for pair in zip(words(2_000, "x"), words(2_000, "y"), strict=True))
    with pytest.raises(QueryError, match="more than 64 alternatives"):
        to_dnf(And(pairs))
    assert len(to_dnf(And(pairs[:6]))) == 64
    assert len(to_dnf(Not(And(pairs[:6])))) == 6

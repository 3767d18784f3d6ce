"""TopK(text, k), the k most frequent terms: alone in a SELECT, or one aggregate among others."""

from nearcast.language.messages import nearest, pointed
from nearcast.language.parsed_select import whole
from nearcast.language.syntax import Call, Name, span_of

_TOPK = "TopK(text, 10), or TopK(text), which means the same"


def number_of_terms(sql: str, topk: Call) -> int:
    """The k of TopK(text, k), 10 unless the text says another."""
    if len(topk.arguments) not in (1, 2):
        raise pointed(sql, topk.name.span, f"TopK has {len(topk.arguments)} values, not one or two", _TOPK)
    text, *number = topk.arguments
    if not isinstance(text, Name) or (text.text if text.quoted else text.text.lower()) != "text":
        meant = nearest(text.text, ["text"]) if isinstance(text, Name) else ""
        raise pointed(sql, span_of(text), "TopK counts the words of text", "text", meant)
    return whole(sql, number[0], "TopK takes a whole number of terms") if number else 10

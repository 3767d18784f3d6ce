import pickle
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.common.kernels.tokens import terms_of
from nearcast.common.text.folding import folding, unicode_version
from nearcast.common.text.tokenizer import Tokenizer
from tests.common.text import oracle_tokenizer as oracle

NOTES = Path(__file__).parents[4] / "shared" / "data" / "osm_notes.parquet"
MODES = pytest.mark.parametrize("keep_accents", [False, True])

CASES = {  # text: its words, and after "|" its tags
    "": "",
    "?! ... -- '' \t\n": "",
    "Flash flood in Subway 7": "flash flood in subway 7",
    "don't wi-fi snake_case": "don t wi fi snake_case",
    "crème brûlée": "creme brulee",
    "cre\u0300me bru\u0302le\u0301e": "creme brulee",
    "Straße STRASSE ＳＴＲＡＳＳＥ": "strasse strasse strasse",
    "İstanbul ISTANBUL ısparta": "istanbul istanbul ısparta",
    "ﬁre ﬂood ½ x² Ⅳ": "fire flood 1 2 x2 iv",
    "ΣΊΣΥΦΟΣ σίσυφος ᾳ": "σισυφοσ σισυφοσ α",
    "ЁЖИК Й": "ежик и",
    "مَرْحَبًا بالعالم": "مَرْحَبًا بالعالم",
    "שָׁלוֹם עולם": "שָׁלוֹם עולם",
    "हिन्दी में बाढ़": "हिन्दी में बाढ़",
    "한국어 홍수": "한국어 홍수",
    "東京tower洪水です。": "東 京 tower 洪 水 て\u3099 す",
    "ｶﾞ ガ": "カ\u3099 カ\u3099",
    "㍿ ㎏": "株 式 会 社 kg",
    "น้ำท่วม": "น\u0e49\u0e4d า ท\u0e48 ว ม",
    "𠀀𠀁 𪚥": "𠀀 𠀁 𪚥",
    "fire🔥🔥now ❤️ 👩🏽‍🚒": "fire 🔥 🔥 now ❤ 👩 🚒",
    "🇩🇪 👍🏿": "🇩 🇪 👍",
    "see http://example.com/a?b=1 now": "see now",
    "HTTPS://Example.com/#x,y now WWW.x.org": "now",
    "(http://a.b) end\u3000www.x\u3000tail": "end tail",
    "洪水http://a.b/c 洪水": "洪 水 洪 水",
    "xhttp://a.b http:/a httpx://b www": "xhttp a b http a httpx b www",
    "http://": "",
    "#http://x @www.y z": "z",
    "flash #Flood now #x": "flash flood now x | #flood #x",
    "@Bob: hi": "bob hi | @bob",
    "#a#b": "a b | #a",
    "a#b a@b.c": "a b a b c",
    "@ # #- ##x @#y": "x y | #x #y",
    "#Café #wi-fi": "cafe wi fi | #cafe #wi",
    "#洪水2024 #2024年 ＃東京🔥": "洪 水 2024 2024 年 東 京 🔥 | #洪水2024 #2024年 #東京",
    "#洪水http://x #🔥": "洪 水 🔥 | #洪水",
    "🔥#x 水#y": "🔥 x 水 y | #x",
    "\u0301 \u064b.\u093f #\u200dx": "x | #x",
    "nul\x00nul \ufeffbom": "nul nul bom",
}
FRAGMENTS = ["http://", "HTTPS://x ", "www.", "#", "@", "#a", " ", "_", "x", "e\u0301", "É", "½", "Ⅷ"]
FRAGMENTS += ["洪水", "が", "น้ำ", "ﷺ", "👩🏽‍🚒"]


def stable(char: str) -> bool:
    """Whether the running Python knows the character as the table does."""
    return unicodedata.unidata_version == unicode_version() or unicodedata.ucd_3_2_0.category(char) != "Cn"


CHARACTERS = st.characters(exclude_categories=["Cs"]).filter(stable)
TEXTS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(CHARACTERS, max_size=4))).map("".join)


def expected(texts: list[str | None], keep_accents: bool) -> list[list[int]]:
    return [[oracle.term(word) for word in oracle.tokenise(text or "", keep_accents)] for text in texts]


def actual(tokenizer: Tokenizer, strings: pa.Array | pa.ChunkedArray) -> list[list[int]]:
    terms, offsets = tokenizer.terms(strings)
    assert (terms.dtype, offsets.dtype, offsets[0], offsets[-1]) == (np.uint64, np.int64, 0, terms.size)
    return [part.tolist() for part in np.split(terms, offsets[1:-1])] if len(strings) else []


@pytest.mark.parametrize(("text", "meaning"), CASES.items())
def test_a_text_has_these_words_and_tags(text: str, meaning: str) -> None:
    words, _, tags = meaning.partition(" | ")
    wanted = [*words.split(), *tags.split()]
    found = Tokenizer().tokens(text)
    assert [unicodedata.normalize("NFC", w) for w in wanted] == [unicodedata.normalize("NFC", w) for w, _ in found]
    assert [t for _, t in found] == [oracle.term(w) for w in wanted]


@MODES
def test_the_table_of_cases_agrees_with_the_oracle(keep_accents: bool) -> None:
    texts = list(CASES)
    assert actual(Tokenizer(keep_accents), pa.array(texts)) == expected(texts, keep_accents)


@MODES
@settings(max_examples=150, deadline=None)
@given(texts=st.lists(TEXTS, max_size=5))
def test_any_texts_have_the_terms_of_the_oracle(keep_accents: bool, texts: list[str]) -> None:
    assert actual(Tokenizer(keep_accents), pa.array(texts, pa.string())) == expected(texts, keep_accents)


def test_every_code_point_is_folded_as_the_oracle_does() -> None:
    """Planes without characters are left out, and most of the ideographs, which are all alike."""
    codes = [*range(0xD800), *range(0xE000, 0x20100), *range(0x2F800, 0x30100), *range(0xE0000, 0xE0200)]
    texts = [f"a{chr(c)}#b" for c in codes if stable(chr(c))]
    assert actual(Tokenizer(True), pa.array(texts)) == expected(texts, True)


@MODES
@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_a_reported_word_is_tokenised_to_its_own_term(keep_accents: bool, text: str) -> None:
    tokenizer = Tokenizer(keep_accents)
    tokens = tokenizer.tokens(text)
    assert [t for _, t in tokens] == [t for t in expected([text], keep_accents)[0] if t]
    for word, term in tokens:
        assert tokenizer.term(word) == term


def test_accents_count_only_where_they_are_kept() -> None:
    assert Tokenizer().term("Café") == Tokenizer().term("cafe") == Tokenizer(True).term("cafe")
    assert Tokenizer(True).term("Café") == Tokenizer(True).term("cafe\u0301") != Tokenizer(True).term("cafe")
    assert [w for w, _ in Tokenizer(True).tokens("CAFÉ がんばれ")] == ["café", "が", "ん", "ば", "れ"]


def test_terms_never_change() -> None:
    """They are stored in every state directory."""
    golden = {
        "flood": 9015733512478278844,
        "#flood": 11963273541566681441,
        "straße": 3639387260676684309,
        "東": 13013457624234058281,
        "が": 1776342195163191006,
        "🎉": 6285501489449848675,
        "한국어": 6405367986752150505,
    }
    assert {word: Tokenizer().term(word) for word in golden} == golden


ROWS = ["one two", None, "#three", "", "vier fünf", None, "洪水", "http://x"]


@pytest.mark.parametrize(
    "strings",
    [
        pa.array(ROWS),
        pa.array(ROWS, pa.large_string()),
        pa.array(ROWS).dictionary_encode(),
        pa.array(["before #x", *ROWS, "after"]).slice(1, len(ROWS)),
        pa.chunked_array([ROWS[:3], [], ROWS[3:]], pa.string()),
        pa.chunked_array([pa.array(["x", *ROWS], pa.large_string()).slice(1)]),
    ],
    ids=["string", "large", "dictionary", "slice", "chunks", "large slice"],
)
def test_any_layout_of_the_same_strings_gives_the_same_terms(strings: pa.Array | pa.ChunkedArray) -> None:
    assert actual(Tokenizer(), strings) == expected(ROWS, False)


def test_a_null_has_no_terms_even_where_bytes_stand_behind_it() -> None:
    offsets = pa.array([0, 1, 2, 3], pa.int32()).buffers()[1]
    strings = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"abc"), pa.py_buffer(b"\x05"))
    assert actual(Tokenizer(), strings) == expected(["a", None, "c"], False)


@pytest.mark.parametrize(
    "strings",
    [pa.array([], pa.string()), pa.chunked_array([], pa.string()), pa.array([None, None]), pa.array(["", None])],
)
def test_strings_without_text_have_no_terms(strings: pa.Array | pa.ChunkedArray) -> None:
    assert actual(Tokenizer(), strings) == [[]] * len(strings)
    assert Tokenizer().words_of(strings, np.array([1], np.uint64))[1] == []


MEGABYTES = [  # (a text, how many terms each copy of it adds, how many more there are)
    ("flood ", 1, 0),
    ("#a ", 2, 1),
    ("㌖", 6, 0),
    ("水", 1, 0),
    ("ﷺ", 3, 1),
    ("1½", 1, 1),
    ("x", 0, 1),
    ("é", 0, 1),
    ("#", 0, 0),
    ("http://", 0, 0),
]


@pytest.mark.parametrize(("unit", "each", "more"), MEGABYTES)
def test_a_text_of_a_megabyte_is_a_text(unit: str, each: int, more: int) -> None:
    copies = 1_000_000 // len(unit.encode())
    before, terms, after = actual(Tokenizer(), pa.array(["a", unit * copies, "b"]))
    assert (before, len(terms), after) == ([oracle.term("a")], each * copies + more, [oracle.term("b")])
    assert len(expected([unit * 30], False)[0]) == each * 30 + more


def test_bytes_that_are_no_utf8_are_read_within_bounds() -> None:
    bad = [b"a\xff", b"\xf7\xbf\xbf\xbf", b"a \xe6\x9d", b"\xc3", b"\x80\x80 b", b"\xf0\x9f\x8e"]
    text = np.frombuffer(b"".join(bad), np.uint8)
    stops = np.cumsum([len(b) for b in bad])
    terms, bounds = terms_of(text, np.concatenate([[0], stops[:-1]]), stops, folding(False))
    assert oracle.term("a") in terms[: bounds[1]] and oracle.term("b") in terms[bounds[4] : bounds[5]]


def test_wanted_terms_are_spelled_in_order_of_occurrence() -> None:
    tokenizer = Tokenizer()
    strings = pa.chunked_array([["Zürich flood", None, "#Flood 洪水"], ["flood Zürich", "がっこう end"]])
    wanted = ["end", "#flood", "absent", "が", "zurich", "水", "end"]
    found, words = tokenizer.words_of(strings, np.array([0, *map(tokenizer.term, wanted)], np.uint64))
    assert words == ["zurich", "水", "#flood", "が", "end"]
    assert found.tolist() == [tokenizer.term(word) for word in words]


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(TEXTS, max_size=8))
def test_the_words_of_all_terms_are_all_words(texts: list[str]) -> None:
    tokenizer = Tokenizer()
    spelled = {term: word for text in texts for word, term in tokenizer.tokens(text)}
    found, words = tokenizer.words_of(pa.array(texts, pa.string()), np.array(list(spelled), np.uint64))
    assert dict(zip(found.tolist(), words, strict=True)) == spelled


@pytest.mark.parametrize(
    ("text", "message"), [("", "holds no word"), ("http://x", "holds no word"), ("wi-fi", "wi, fi"), ("#a b", "a, b")]
)
def test_what_is_not_one_word_has_no_term(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Tokenizer().term(text)


def test_a_lone_surrogate_separates() -> None:
    assert [word for word, _ in Tokenizer().tokens("a\ud800b")] == ["a", "b"]


def test_a_tokenizer_travels_by_pickle() -> None:
    assert pickle.loads(pickle.dumps(Tokenizer(keep_accents=True))) == Tokenizer(keep_accents=True)


@pytest.mark.skipif(not NOTES.exists(), reason="the shared data is not here")
@MODES
def test_real_notes_have_the_terms_of_the_oracle(keep_accents: bool) -> None:
    notes = pq.read_table(NOTES, columns=["text"])["text"]
    texts = notes.take(list(range(0, len(notes), len(notes) // 2000))).to_pylist()
    assert actual(Tokenizer(keep_accents), pa.array(texts, pa.string())) == expected(texts, keep_accents)

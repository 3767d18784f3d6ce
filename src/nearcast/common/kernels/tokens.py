"""The tokeniser's inner loop: UTF-8 bytes in, 64-bit term ids out.

Every code point is looked up in a `Folding`: the kind of character it is, and what it is folded to, which may be
several code points. These run through a small state machine that cuts words; `nearcast.common.text.tokenizer` states
its rules. A term is a hash of the word's folded code points, never 0; 0 is the boundary between words and tags.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.mix import mix, slot_of

Bytes = NDArray[np.uint8]
Terms = NDArray[np.uint64]
Entries = NDArray[np.uint32]
Pages = NDArray[np.uint16]
Positions = NDArray[np.int64]

# The kinds of character. EXPAND stands for several folded code points, each with a kind of its own.
OTHER, SPACE, WORD, MARK, ACCENT, UNSPACED, PICTOGRAPH, DROP, SIGN, EXPAND = range(10)
KIND_SHIFT = 28
VALUE_MASK = (1 << KIND_SHIFT) - 1

BOUNDARY = np.uint64(0)
SEED = np.uint64(0x6E65617263617374)
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

TERMS_PER_BYTE = 2  # no text has more words, tags and boundary than this; scripts/make_folding.py holds the table to it
LETTERS_PER_BYTE = 6  # nor more folded code points than this

NOWHERE, IN_WORD, IN_CHARACTER = range(3)  # what is open: nothing, a word, or a character of a script without spaces


class Folding(NamedTuple):
    """What each code point is folded to.

    `pages[directory[c >> 8] * 256 + (c & 255)]` is the entry of code point c: its kind in the upper bits; in the lower
    ones the code point it becomes (0: itself), or for EXPAND a place in `expansions`, where a length stands and then
    that many entries. ASCII is page 0. `accent` is what ACCENT stands for: DROP, or MARK where accents are kept.
    """

    pages: Entries
    directory: Pages
    expansions: Entries
    accent: int


@kernel
def _add(state: np.uint64, code: int) -> np.uint64:
    return (state ^ np.uint64(code)) * MULTIPLIER


@kernel
def _finish(state: np.uint64) -> np.uint64:
    term = mix(state)
    return term if term != BOUNDARY else np.uint64(1)


@kernel
def _url_at(text: Bytes, i: int, end: int) -> bool:
    """Whether http://, https:// or www. stands at i, in any case."""
    if end - i >= 4 and text[i] | 32 == 119:
        return text[i + 1] | 32 == 119 and text[i + 2] | 32 == 119 and text[i + 3] == 46
    if end - i < 7 or text[i] | 32 != 104 or text[i + 1] | 32 != 116 or text[i + 2] | 32 != 116:
        return False
    if text[i + 3] | 32 != 112:
        return False
    colon = i + 5 if text[i + 4] | 32 == 115 else i + 4
    return colon + 2 < end and text[colon] == 58 and text[colon + 1] == 47 and text[colon + 2] == 47


@kernel
def _ascii_words(
    text: Bytes, i: int, end: int, pages: Entries, terms: Terms, count: int
) -> tuple[int, int, int, np.uint64]:
    """What `_scan` does, for what most texts are made of: it stops at a sign, a URL and the first byte not ASCII.

    Returns where it stopped, the new count, whether it stopped inside a word, and the hash of that word so far.
    """
    while i < end:
        byte = text[i]
        if byte >= 128:
            break
        entry = np.int64(pages[byte])
        kind = entry >> KIND_SHIFT
        if kind != WORD:
            if kind == SIGN:
                break
            i += 1
            continue
        if (byte | 32 == 104 or byte | 32 == 119) and _url_at(text, i, end):
            break
        word = SEED
        while kind == WORD:
            word = _add(word, entry & VALUE_MASK)
            i += 1
            if i >= end:
                break
            byte = text[i]
            if byte >= 128:
                return i, count, IN_WORD, word
            entry = np.int64(pages[byte])
            kind = entry >> KIND_SHIFT
        if kind == SIGN:
            return i, count, IN_WORD, word
        terms[count] = _finish(word)
        count += 1
    return i, count, NOWHERE, SEED


@kernel
def _scan(
    text: Bytes,
    i: int,
    end: int,
    folding: Folding,
    terms: Terms,
    count: int,
    state: int,
    word: np.uint64,
    tags: Terms,
    letters: Entries,
    spans: Positions,
    tag_spans: Positions,
) -> int:
    """Write the terms of text[i:end] to `terms` from `count` on, and return the new count.

    `state` says what is open before i, and `word` is its hash so far; each character changes them by the rules.
    There must be room for TERMS_PER_BYTE a byte in `terms`, and for one in two bytes in `tags`. Where `letters` has any
    room, it must be LETTERS_PER_BYTE, and how the terms are spelled is written too: the folded code points to
    `letters`, and (from, to, sign or 0) of each term and each tag to its row of `spans` and of `tag_spans`.

    Arrays go to no helper in the loop: each time one changes hands, Numba counts it, atomically.
    """
    pages, directory, expansions, accent = folding
    spell = letters.size > 0
    tagged, tag, sign = False, SEED, 0  # is a tag open, its hash, and its sign: read just before, or at its beginning
    tag_count = 0
    left, cursor = 0, 0  # entries of an expansion still to be read, and where
    written, word_start, tag_start = 0, 0, 0  # in letters
    in_url, ended = False, False
    while not ended:
        code, entry = np.int64(0), np.int64(0)
        if left > 0:
            entry = np.int64(expansions[cursor])
            left -= 1
            cursor += 1
        elif i < end:
            code = np.int64(text[i])
            if code < 128:
                entry = np.int64(pages[code])
                i += 1
            else:
                width = 1 + (code >= 0xC0) + (code >= 0xE0) + (code >= 0xF0)
                if width == 1 or i + width > end:  # no UTF-8
                    width, code = 1, np.int64(0xFFFD)
                else:
                    code &= 0x7F >> width
                    for k in range(1, width):
                        code = code << 6 | np.int64(text[i + k]) & 0x3F
                    code = min(code, np.int64(0x10FFFF))
                entry = np.int64(pages[np.int64(directory[code >> 8]) * 256 + (code & 255)])
                i += width
            if in_url:
                if entry >> KIND_SHIFT != SPACE:
                    continue
                in_url = False
            if entry >> KIND_SHIFT == EXPAND:
                left, cursor = np.int64(expansions[entry & VALUE_MASK]), (entry & VALUE_MASK) + 1
                continue
        else:
            ended = True  # closes what is open, like any character that is no part of a word
        if entry & VALUE_MASK:
            code = entry & VALUE_MASK
        kind = entry >> KIND_SHIFT
        if kind == ACCENT:
            kind = accent
        if kind == DROP:
            continue

        joins = state != NOWHERE and (kind == MARK or (kind == WORD and state == IN_WORD))
        begins = kind == UNSPACED or (kind == WORD and not joins)
        # A code point from an expansion has a continuation byte before i, so it begins no URL.
        if begins and (code == 104 or code == 119) and _url_at(text, i - 1, end):
            in_url, begins, kind = True, False, OTHER

        if state != NOWHERE and not joins:  # what was open is whole
            terms[count] = _finish(word)
            if spell:
                spans[count, 0], spans[count, 1], spans[count, 2] = word_start, written, 0
            count += 1
            if tagged and not begins:
                tags[tag_count] = _finish(tag)
                if spell:
                    tag_spans[tag_count, 0], tag_spans[tag_count, 1], tag_spans[tag_count, 2] = tag_start, written, sign
                tag_count += 1
                tagged = False
        if begins:
            if state == NOWHERE and sign != 0:
                tagged, tag, tag_start = True, _add(SEED, sign), written
            word, word_start = SEED, written
            state = IN_WORD if kind == WORD else IN_CHARACTER
        if begins or joins:
            word = _add(word, code)
            if tagged:
                tag = _add(tag, code)
            if spell:
                letters[written] = code
                written += 1
            elif state == IN_WORD and not tagged and left == 0:
                while i < end and text[i] < 128:  # on to the end of an ASCII word, a shorter way round
                    entry = np.int64(pages[text[i]])
                    if entry >> KIND_SHIFT != WORD:
                        break
                    word = _add(word, entry & VALUE_MASK)
                    i += 1
            continue

        sign = code if kind == SIGN and state == NOWHERE else 0
        state = NOWHERE
        if kind == PICTOGRAPH:
            terms[count] = _finish(_add(SEED, code))
            if spell:
                letters[written] = code
                spans[count, 0], spans[count, 1], spans[count, 2] = written, written + 1, 0
                written += 1
            count += 1

    if tag_count > 0:
        terms[count] = BOUNDARY
        count += 1
        for t in range(tag_count):
            terms[count] = tags[t]
            if spell:
                spans[count, 0], spans[count, 1], spans[count, 2] = tag_spans[t, 0], tag_spans[t, 1], tag_spans[t, 2]
            count += 1
    return count


@kernel
def _sizes(starts: Positions, stops: Positions) -> tuple[int, int]:
    """The length of the longest text, and of all."""
    longest, total = np.int64(0), np.int64(0)
    for p in range(starts.size):
        longest = max(longest, stops[p] - starts[p])
        total += stops[p] - starts[p]
    return longest, total


@kernel
def _grown(values: NDArray[Any], size: int) -> NDArray[Any]:
    """A larger array that begins with the same values."""
    out = np.empty(size, values.dtype)
    for i in range(values.size):
        out[i] = values[i]
    return out


@kernel
def _fill(
    text: Bytes,
    starts: Positions,
    stops: Positions,
    folding: Folding,
    terms: Terms,
    tags: Terms,
    bounds: Positions,
    p: int,
) -> int:
    """Write the terms of the texts from p on, as long as there is room for sure; return the first text left out."""
    pages = folding.pages
    letters, spans = np.empty(0, np.uint32), np.empty((0, 3), np.int64)
    count = bounds[p]
    while p < starts.size and count + TERMS_PER_BYTE * (stops[p] - starts[p]) <= terms.size:
        end = stops[p]
        i, count, state, word = _ascii_words(text, starts[p], end, pages, terms, count)
        if i < end:
            count = _scan(text, i, end, folding, terms, count, state, word, tags, letters, spans, spans)
        p += 1
        bounds[p] = count
    return p


@kernel
def terms_of(text: Bytes, starts: Positions, stops: Positions, folding: Folding) -> tuple[Terms, Positions]:
    """The terms of every text, end to end, and where each text's begin (one more than there are texts).

    Text p is text[starts[p]:stops[p]]. Words come in their order; a text with tags goes on with BOUNDARY and the tags.
    """
    longest, total = _sizes(starts, stops)
    terms = np.empty(total // 5 + TERMS_PER_BYTE * longest, np.uint64)
    tags = np.empty(longest // 2 + 1, np.uint64)
    bounds = np.zeros(starts.size + 1, np.int64)
    p = _fill(text, starts, stops, folding, terms, tags, bounds, np.int64(0))
    while p < starts.size:
        terms = _grown(terms, 2 * terms.size + TERMS_PER_BYTE * longest)
        p = _fill(text, starts, stops, folding, terms, tags, bounds, p)
    return terms[: bounds[-1]], bounds


@kernel
def first_places(terms: Terms, wanted: Terms) -> Positions:
    """Where each wanted term (distinct, not 0) first stands in `terms`; -1 where it does not."""
    slots = 2 * wanted.size + 1
    table = np.full(slots, -1, np.int64)
    for w in range(wanted.size):
        slot = slot_of(wanted[w], slots)
        while table[slot] >= 0:
            slot = (slot + 1) % slots
        table[slot] = w
    places = np.full(wanted.size, -1, np.int64)
    for at in range(terms.size):
        slot = slot_of(terms[at], slots)
        while table[slot] >= 0:
            if wanted[table[slot]] == terms[at]:
                if places[table[slot]] < 0:
                    places[table[slot]] = at
                break
            slot = (slot + 1) % slots
    return places


@kernel
def spell_out(
    text: Bytes, starts: Positions, stops: Positions, folding: Folding, bounds: Positions, places: Positions
) -> tuple[Entries, Positions]:
    """The folded code points of the terms at `places` (ascending), end to end, and where each one's begin.

    `bounds` is what `terms_of` said of the same texts. A tag is spelled with its sign.
    """
    longest, _ = _sizes(starts, stops)
    terms = np.empty(TERMS_PER_BYTE * longest, np.uint64)
    tags = np.empty(longest // 2 + 1, np.uint64)
    letters = np.empty(LETTERS_PER_BYTE * longest, np.uint32)
    spans, tag_spans = np.zeros((terms.size, 3), np.int64), np.zeros((tags.size, 3), np.int64)
    out = np.empty(16 * places.size + 16, np.uint32)
    edges = np.zeros(places.size + 1, np.int64)
    none = np.int64(0)
    count, scanned, p = none, -1, 0
    for k in range(places.size):
        while bounds[p + 1] <= places[k]:
            p += 1
        if scanned != p:
            i, end, state = starts[p], stops[p], np.int64(NOWHERE)
            _scan(text, i, end, folding, terms, none, state, SEED, tags, letters, spans, tag_spans)
            scanned = p
        row = places[k] - bounds[p]
        start, stop, sign = spans[row, 0], spans[row, 1], spans[row, 2]
        if count + stop - start + 1 > out.size:
            out = _grown(out, 2 * (count + stop - start + 1))
        if sign != 0:
            out[count] = sign
            count += 1
        for letter in range(start, stop):
            out[count] = letters[letter]
            count += 1
        edges[k + 1] = count
    return out[:count], edges

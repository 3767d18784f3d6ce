"""Make src/nearcast/common/text/folding.npz from the running Python's Unicode tables.

Term ids are stored in every state directory, so the table is made once and shipped: it must not change with the Python
that runs. Making it anew changes the terms of what it changes; states made before must then be rebuilt.

    python scripts/make_folding.py
"""

import unicodedata
from pathlib import Path

import numpy as np

from nearcast.common.kernels import tokens as k

TARGET = Path(__file__).parent.parent / "src" / "nearcast" / "common" / "text" / "folding.npz"

ACCENTS = range(0x0300, 0x0370)
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
PICTURES = range(0x1F000, 0x1FB00)  # emoji, and where new ones will come
IDEOGRAPHIC_PLANES = range(0x20000, 0x40000)  # Han, and where new ones will come
WHITESPACE_CONTROLS = {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85}
DROPPED = (
    range(0x200D, 0x200E),  # zero width joiner
    range(0xFE00, 0xFE10),  # variation selectors
    range(0xE0100, 0xE01F0),
    range(0x1F3FB, 0x1F400),  # skin tones
)
UNSPACED = (
    range(0x0E00, 0x0F00),  # Thai, Lao
    range(0x1000, 0x10A0),  # Myanmar
    range(0xA9E0, 0xAA00),
    range(0xAA60, 0xAA80),
    range(0x1780, 0x1800),  # Khmer
    range(0x2E80, 0x2FE0),  # Han: radicals, signs and numerals
    range(0x3005, 0x3008),
    range(0x3021, 0x302A),
    range(0x3031, 0x3036),
    range(0x3038, 0x303D),
    range(0x3040, 0x3130),  # Hiragana, Katakana, Bopomofo
    range(0x31A0, 0x31C0),
    range(0x31F0, 0x3200),
    range(0x3400, 0x4DC0),  # Han
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x1AFF0, 0x1B170),  # more Kana
)


def within(code: int, ranges: tuple[range, ...]) -> bool:
    return any(code in span for span in ranges)


def is_space(code: int) -> bool:
    return code in WHITESPACE_CONTROLS or unicodedata.category(chr(code))[0] == "Z"


def kind_of(code: int) -> int:
    """The kind of a code point that is folded to itself."""
    category = unicodedata.category(chr(code))
    if within(code, DROPPED):
        return k.DROP
    if code in ACCENTS:
        return k.ACCENT
    if code in IDEOGRAPHIC_PLANES:
        return k.UNSPACED
    if category[0] in "LN" or code == ord("_"):
        return k.UNSPACED if within(code, UNSPACED) else k.WORD
    if category[0] == "M":
        return k.MARK
    if category == "So" or code in PICTURES:
        return k.PICTOGRAPH
    if is_space(code):
        return k.SPACE
    return k.SIGN if code in (ord("#"), ord("@")) else k.OTHER


def fold(code: int) -> list[int]:
    """Decomposed (NFKD, Hangul syllables left whole) and case folded, again and again until nothing changes.

    Accents are not case folded: that would make a letter of U+0345.
    """
    text = chr(code)
    while not is_space(code) and code not in HANGUL_SYLLABLES:
        decomposed = unicodedata.normalize("NFKD", text)
        folded = "".join(c if ord(c) in ACCENTS else c.casefold() for c in decomposed)
        if folded == text:
            break
        text = folded
    return [ord(c) for c in text]


def tokens_at_most(kinds: list[int]) -> int:
    """How many tokens can begin in an expansion, whatever stands before it."""
    alone = sum(kind in (k.UNSPACED, k.PICTOGRAPH) for kind in kinds)
    words = sum(
        kind == k.WORD and (at == 0 or kinds[at - 1] not in (k.WORD, k.MARK, k.ACCENT)) for at, kind in enumerate(kinds)
    )
    return alone + words


def main() -> None:
    entries = np.zeros(0x110000, np.uint32)
    expansions = [0]  # place 0 stays unused
    places: dict[tuple[int, ...], int] = {}
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        folded = fold(code)
        kinds = [kind_of(c) for c in folded]
        width = len(chr(code).encode())
        assert tokens_at_most(kinds) <= k.TERMS_PER_BYTE * width, hex(code)
        assert len(folded) <= k.LETTERS_PER_BYTE * width, hex(code)
        if len(folded) == 1:
            value = folded[0] if folded[0] != code or code < 128 else 0
            entries[code] = kinds[0] << k.KIND_SHIFT | value
            continue
        expansion = tuple(kind << k.KIND_SHIFT | c for kind, c in zip(kinds, folded, strict=True))
        if expansion not in places:
            places[expansion] = len(expansions)
            expansions += [len(expansion), *expansion]
        entries[code] = k.EXPAND << k.KIND_SHIFT | places[expansion]
    pages, directory = np.unique(entries.reshape(-1, 256), axis=0, return_inverse=True)
    order = np.argsort(np.arange(len(pages)) != directory[0], kind="stable")  # ASCII's page first
    np.savez_compressed(
        TARGET,
        pages=pages[order].reshape(-1),
        directory=np.argsort(order)[directory].astype(np.uint16),
        expansions=np.array(expansions, np.uint32),
        unicode=np.array(unicodedata.unidata_version),
    )
    print(f"{TARGET.name}: Unicode {unicodedata.unidata_version}, {len(pages)} pages, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

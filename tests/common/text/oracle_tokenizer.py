"""The tokeniser's rules, character by character and with regular expressions, from Python's own Unicode tables."""

import re
import unicodedata

URL = re.compile(r"https?://|www\.", re.IGNORECASE | re.ASCII)
UNSPACED_NAMES = re.compile(
    r"CJK UNIFIED|CJK COMPATIBILITY IDEO|CJK RADICAL|KANGXI|IDEOGRAPHIC (?!TALLY)|HANGZHOU|VERTICAL KANA|VERTICAL IDEO"
    r"|MASU MARK|HIRAGANA|KATAKANA|HENTAIGANA|BOPOMOFO|THAI |LAO |KHMER |MYANMAR "
)


def is_space(char: str) -> bool:
    return char in "\t\n\v\f\r\x85" or unicodedata.category(char)[0] == "Z"


def is_accent(char: str) -> bool:
    return "\u0300" <= char <= "\u036f"


def is_ignored(char: str) -> bool:
    return char == "\u200d" or 0x1F3FB <= ord(char) <= 0x1F3FF or "VARIATION SELECTOR-" in unicodedata.name(char, "")


def folded(char: str) -> str:
    """Decomposed and case folded, to the end; white space and Hangul syllables stay as they are."""
    if is_space(char) or "\uac00" <= char <= "\ud7a3":
        return char
    once = "".join(c if is_accent(c) else c.casefold() for c in unicodedata.normalize("NFKD", char))
    return once if once == char else "".join(folded(c) for c in once)


def kind(char: str) -> str:
    """w: part of a word, u: of a script without spaces, m: a mark, p: a picture, s: a sign, o: anything else."""
    category = unicodedata.category(char)
    if 0x20000 <= ord(char) < 0x40000:
        return "u"
    if category[0] in "LN" or char == "_":
        return "u" if UNSPACED_NAMES.match(unicodedata.name(char, "")) else "w"
    if category[0] == "M":
        return "m"
    if category == "So" or 0x1F000 <= ord(char) < 0x1FB00:
        return "p"
    return "s" if char in "#@" else "o"


def normalised(text: str, keep_accents: bool) -> str:
    chars = (c for char in text for c in folded(char) if not is_ignored(c))
    return "".join(c for c in chars if keep_accents or not is_accent(c))


def without_urls(text: str, keep_accents: bool) -> str:
    """Each URL that begins where a word could, up to the next white space, gives way to a line break."""
    at = 0
    while match := URL.search(text, at):
        before = "".join(map(kind, normalised(text[: match.start()], keep_accents)))
        at = match.start() + 1
        if not re.search("wm*$", before):
            end = next((i for i in range(match.start(), len(text)) if is_space(text[i])), len(text))
            text = text[: match.start()] + "\n" + text[end:]
    return text


def tokenise(text: str, keep_accents: bool = False) -> list[str]:
    """The words in order, then, if there are any, the boundary "" and the tags."""
    chars = normalised(without_urls(text, keep_accents), keep_accents)
    kinds = "".join(map(kind, chars))
    kinds = re.sub("(?<![wum])m+", lambda loose: "o" * len(loose[0]), kinds)
    words = [chars[m.start() : m.end()] for m in re.finditer("w[wm]*|um*|p", kinds)]
    tags = [chars[m.start() : m.end()] for m in re.finditer("(?<![wum])s[wu][wum]*", kinds)]
    return [*words, "", *tags] if tags else words


def term(word: str) -> int:
    """The hash of a word's code points; 0 for the boundary."""
    if word == "":
        return 0
    bits = 2**64 - 1
    state = 0x6E65617263617374
    for char in word:
        state = (state ^ ord(char)) * 0x9E3779B97F4A7C15 & bits
    state = (state + 0x9E3779B97F4A7C15) & bits
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & bits
    state = (state ^ state >> 27) * 0x94D049BB133111EB & bits
    return state ^ state >> 31 or 1

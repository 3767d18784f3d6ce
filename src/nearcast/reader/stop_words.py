"""Stop words: terms that a count of frequent terms leaves out."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.errors import BadInput
from nearcast.common.text.tokenizer import Tokenizer

ENGLISH = """
a about above after again against all also am an and any are aren as at be because been before being below between
both but by can could couldn did didn do does doesn doing don down during each few for from further get had hadn has
hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just ll me more
most mustn my myself no nor not now of off on once only or other our ours ourselves out over own re s same shan she
should shouldn so some such t than that the their theirs them themselves then there these they this those through to
too under until up ve very was wasn we were weren what when where which while who whom why will with won would wouldn
you your yours yourself yourselves
"""


def stop_terms(words: str | Iterable[str] | None, tokenizer: Tokenizer) -> np.ndarray:
    """The terms of 'english', of the words of a file (by its path), or of words given one by one."""
    if words is None:
        return frozen(np.empty(0, np.uint64))
    words = words_of(words) if isinstance(words, str) else words
    terms = {term for word in words for _, term in tokenizer.tokens(word)}
    return frozen(np.array(sorted(terms), np.uint64))


def words_of(name: str) -> tuple[str, ...]:
    """The words of 'english', or of a file."""
    return tuple(ENGLISH.split() if name == "english" else _of_file(Path(name)))


def _of_file(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"cannot read stop words from {path}: {error}; write 'english' or the name of a file of words"
        ) from None

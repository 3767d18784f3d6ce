"""What derives an attribute, and from what."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from nearcast.common.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Given:
    """Posts (columns as in `post_schema`) and their words, as the tokeniser gives them."""

    posts: pa.Table
    terms: np.ndarray
    offsets: np.ndarray
    tokenizer: Tokenizer

    @classmethod
    def of(cls, posts: pa.Table, tokenizer: Tokenizer) -> "Given":
        return cls(posts, *tokenizer.terms(posts["text"]), tokenizer)


class Deriver(Protocol):
    """One attribute: a value for each post, or null."""

    def values(self, given: Given) -> pa.Array: ...

"""A sample of posts, as the query sets need it: places, the words of each, and how frequent each word is."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.sources.world.stream import World

SAMPLED = 100_000  # posts taken from a World
FEWEST_WORDS = 300  # so that the top 1% are as many as a query may have words


@dataclass(frozen=True, eq=False)
class PostSample:
    """Posts that have words. `words` is in order of frequency, the most frequent first, so a word's number is its
    rank; post i has the distinct words `terms[start[i]:start[i + 1]]`."""

    lon: npt.NDArray[np.float64]
    lat: npt.NDArray[np.float64]
    words: pa.StringArray
    terms: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]

    @classmethod
    def of(cls, source: "World | pa.Table | PostSample") -> "PostSample":
        """From a World (its first posts), from a table with the columns lon, lat and text, or the sample itself."""
        if isinstance(source, PostSample):
            return source
        posts = source.posts(0, SAMPLED) if isinstance(source, World) else source
        lists = split_words(posts["text"])
        post = pc.list_parent_indices(lists).to_numpy()
        encoded = lists.flatten().dictionary_encode()
        if len(encoded.dictionary) < FEWEST_WORDS:
            raise BadInput(
                f"query sets need a sample with at least {FEWEST_WORDS} different words, "
                f"this one has {len(encoded.dictionary)}: give more posts"
            )
        distinct = np.unique(post * len(encoded.dictionary) + encoded.indices.to_numpy())
        post, word = np.divmod(distinct, len(encoded.dictionary))
        by_frequency = np.argsort(-np.bincount(word, minlength=len(encoded.dictionary)), kind="stable")
        rank = np.empty(len(by_frequency), np.int32)
        rank[by_frequency] = np.arange(len(by_frequency), dtype=np.int32)
        with_words, start = np.unique(post, return_index=True)
        return cls(
            lon=posts["lon"].to_numpy()[with_words],
            lat=posts["lat"].to_numpy()[with_words],
            words=encoded.dictionary.take(pa.array(by_frequency)),
            terms=rank[word],
            start=np.append(start, len(word)),
        )

    @property
    def top(self) -> int:
        """How many words are the top 1% most frequent: those numbered below it."""
        return len(self.words) // 100


def split_words(text: pa.ChunkedArray) -> pa.ListArray:
    """The words of each text, in small letters, links left out. Plainer than the tokeniser: good enough for choosing
    words to ask for."""
    clean = pc.replace_substring_regex(text, pattern=r"https?://\S+", replacement=" ")
    clean = pc.replace_substring_regex(pc.utf8_lower(clean), pattern=r"[^\p{L}\p{N}\p{M}]+", replacement=" ")
    words = pc.split_pattern(pc.utf8_trim_whitespace(clean), " ").combine_chunks()
    filled = pc.not_equal(words.flatten(), "")
    kept = np.concatenate([np.zeros(1, np.int32), np.cumsum(filled.to_numpy(zero_copy_only=False), dtype=np.int32)])
    offsets = words.offsets.to_numpy() - words.offsets[0].as_py()
    return pa.ListArray.from_arrays(pa.array(kept[offsets]), words.flatten().filter(filled))

"""Learning a model of topics from posts, with scikit-learn's LatentDirichletAllocation."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_matrix

from nearcast.common.errors import BadInput
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.sources.derive.topic import Topic

MOST_POSTS = 500_000
WORDS = 20_000
PASSES = 5
BATCH = 1_024
RARE, FREQUENT = 5, 0.1  # terms in fewer posts teach nothing; those in a greater part of them say nothing

Progress = Callable[[str, int, int], None]  # what is being done, how much of it is, of how much


def train(
    posts: Iterable[pa.Table],
    topics: int = 50,
    most: int = MOST_POSTS,
    words: int = WORDS,
    passes: int = PASSES,
    seed: int = 0,
    tokenizer: Tokenizer | None = None,
    progress: Progress = lambda doing, done, of: None,
) -> Topic:
    """A model of the first `most` posts; the same posts and seed give the same model.

    Its vocabulary are the `words` terms that most posts have, without those that a tenth of all have, and without those
    that fewer than five have.
    """
    lda = _lda(topics, seed)
    tokenizer = tokenizer or Tokenizer()
    texts = pa.chunked_array(_texts(posts, most, progress), pa.string())
    if not len(texts):
        raise BadInput("there are no posts to learn topics from")
    terms, offsets = tokenizer.terms(texts)
    of = np.repeat(np.arange(len(texts)), np.diff(offsets))
    known = _vocabulary(terms, of, len(texts), words)
    if len(known) < 2:
        raise BadInput(f"{len(texts):,} posts have too few words in common to learn topics from")
    place = np.minimum(np.searchsorted(known, terms), len(known) - 1)
    there = known[place] == terms
    matrix = csr_matrix((np.ones(there.sum()), (of[there], place[there])), (len(texts), len(known)))
    matrix = matrix[np.diff(matrix.indptr) > 0]
    order = np.random.default_rng(seed).permutation(matrix.shape[0])
    lda.total_samples = matrix.shape[0]
    steps = [order[at : at + BATCH] for _ in range(passes) for at in range(0, len(order), BATCH)]
    for done, rows in enumerate(steps):
        lda.partial_fit(matrix[np.sort(rows)])
        progress("learning", done + 1, len(steps))
    found, spelled = tokenizer.words_of(texts, known)
    names = np.array(spelled)[np.argsort(found)]
    return Topic(known, names, np.asarray(lda.components_), float(lda.doc_topic_prior_), tokenizer)


def _lda(topics: int, seed: int) -> Any:
    if topics < 2:
        raise BadInput(f"--topics {topics}: give two or more")
    try:
        from sklearn.decomposition import LatentDirichletAllocation
    except ImportError:
        raise BadInput(
            "topics are learned with scikit-learn, which is not there: pip install 'nearcast[topics]'"
        ) from None
    return LatentDirichletAllocation(n_components=topics, learning_method="online", random_state=seed)


def _texts(posts: Iterable[pa.Table], most: int, progress: Progress) -> Iterator[pa.Array]:
    read = 0
    for table in posts:
        for chunk in table["text"].slice(0, most - read).chunks:
            read += len(chunk)
            yield chunk
        progress("reading posts", read, most)
        if read >= most:
            return


def _vocabulary(terms: np.ndarray, of: np.ndarray, posts: int, most: int) -> np.ndarray:
    """The terms of the model, sorted."""
    order = np.lexsort((of, terms))
    terms, of = terms[order], of[order]
    first = np.ones(len(terms), np.bool_)
    first[1:] = (terms[1:] != terms[:-1]) | (of[1:] != of[:-1])  # a term counts once a post
    distinct, counts = np.unique(terms[first], return_counts=True)
    good = (counts >= min(RARE, max(1, posts // 20))) & (counts <= max(1, int(posts * FREQUENT))) & (distinct != 0)
    distinct, counts = distinct[good], counts[good]
    return np.sort(distinct[np.lexsort((distinct, -counts))[:most]])

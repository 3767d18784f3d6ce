"""From text to terms: one tokeniser for posts and for queries, so that what was written can be asked for."""

from nearcast.common.text.tokenizer import Tokenizer

__all__ = ["Tokenizer"]

"""Errors that a user can cause: each prints as one clear message, never as a traceback."""


class NearcastError(Exception):
    """Something went wrong that the message explains; the command line exits with `exit_code`."""

    exit_code = 1


class BadInput(NearcastError):
    """What was typed or given cannot be used; the message says what to do instead."""

    exit_code = 2


class QueryError(BadInput):
    """A query text that makes no sense: the message holds the line, a caret under the word, and what was expected."""

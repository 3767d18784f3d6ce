"""Subscriptions by relevance (Skype and DSkype): their part of a batch.

In the first round posts are noted in the ledger; then each worker matches those of the batch with the subscribers that
it holds (`match`), and settles the buffers of those whose home it is (`settle`). `rounds` is the whole of it.
"""

from nearcast.common.kinds import Kind

KIND = Kind("relevance", code=4, package=__name__)

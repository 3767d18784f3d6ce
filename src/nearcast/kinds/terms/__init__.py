"""The most frequent terms, reported on a tick (SSTD's CTQ) and asked once (STQ)."""

"""Indexes, one a file, each with a brute-force twin.

A subscription index says which standing range queries a post satisfies. Its data are flat arrays, so that a worker
opens it by memory-mapping and merging it is array work:

- `rows` holds the subscriptions themselves, column by column;
- `filing` says where a subscription is filed: `pyramid` (many levels) and `gi2` (one grid) are two ways;
- `segment` is rows plus the directory that finds them;
- `subscriptions` is the log-structured whole: many segments, and the ends that later ops gave to their rows;
- `brute` tries every subscription on every post, and is what the others are held to.
"""

"""Segments of subscriptions: which standing conditions does a post satisfy?

The data are flat arrays, so that a worker opens a segment by memory-mapping and merging it is array work:

- `rows` holds the subscriptions themselves, column by column;
- `filing` says where a subscription is filed: `pyramid` (many levels) and `gi2` (one grid) are two ways;
- `subscription_segment` is rows plus the directory that finds them;
- `subscription_set` is the log-structured whole: many segments, and the ends that later ops gave to their rows;
- `brute_force` tries every subscription on every post, and is what the others are held to.
"""

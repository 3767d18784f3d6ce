"""Segments of posts: their layout on disk, and how posts are found in them by place, words, time and attributes.

`post_segment` is one segment, memory-mapped; `post_layout` writes it. `question` is what is asked of posts, ready for
the kernels; `range_search`, `nearest_search` and `term_counts` answer it, over one segment or over a `segment_group` by
one call. `shortcuts` are the ways around the tree of places, where words, time or an attribute say more.
"""

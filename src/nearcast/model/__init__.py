"""The nouns of Nearcast: posts, regions, keyword expressions, queries, ops and results.

Frozen dataclasses for what a person writes, Arrow schemas for what flows in bulk. Nothing here computes
answers; every other package builds on these names.
"""

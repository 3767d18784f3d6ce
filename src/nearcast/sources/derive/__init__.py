"""Attributes derived once, when a post arrives, and stored with it (STAR §3.1): what costs too much to compute
whenever it is wanted, or depends on a model or on a user's code. Chosen with `nearcast run --derive`.

Each is a function from columns to a column. A post's own field of that name wins. What a state derives is recorded in
it, so that every run of it derives the same until it is told otherwise.
"""

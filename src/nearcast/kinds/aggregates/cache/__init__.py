"""STAR's caches (STAR §4): answers of repeated aggregates from views, summaries and cached borders.

A cache belongs to a process that reads a state. It learns from the queries it is asked which aggregates to keep (§4.1,
*views*) and which posts along the borders of regions (§4.2, *borders*), within a budget of bytes. Segments of posts are
immutable, so a view is a set of partial aggregates by segment: what a new manifest adds is added, what it drops is
dropped, and nothing is ever out of date. Every exact query has the same answer with a cache and without.

`nodes` the quadtree · `views` what a view answers · `selection` which views pay · `border_posts` which posts to
keep at hand · `plan` the query's path · `learning` the choice, made anew · `answer_memory` whole answers, until the
next batch.
"""

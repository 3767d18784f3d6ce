"""Routers: which leaf stores a post, which match it, and which leaves a query concerns (the papers' global index).

A router is data: it is saved in the state, and the same file with the same number of workers routes alike everywhere.
"""

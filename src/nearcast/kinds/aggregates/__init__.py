"""Aggregates by group, reported on a tick and asked once (STAR)."""

"""Routers that serve as baselines."""

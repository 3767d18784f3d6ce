"""Nearcast: standing and one-off questions about streams of geo-tagged text."""

from nearcast import _env

_env.configure()

"""Routers, one file each; `registry` has them by the name that `--router` takes."""

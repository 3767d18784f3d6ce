"""The documentation's figures, made from saved results: `nearcast bench NAME --save` leaves one under docs/benchmarks,
and `python -m nearcast_papers.render` makes docs/benchmarks.md, its plots and the README's table of all of them.
"""

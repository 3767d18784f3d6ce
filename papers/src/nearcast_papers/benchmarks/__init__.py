"""What the README's figures come from: each module measures one thing and says what it was measured on.

A benchmark has a `SUMMARY` and `run(progress, **options)`, which gives one object of JSON: `machine`, `parameters` (the
seed among them) and `figures`, each with its unit in its name, its repeats where there are several, and the target it
is held to.
"""

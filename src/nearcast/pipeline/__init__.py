"""The data path: route, work, merge, commit, deliver.

Each stage is a plain function over Arrow tables, in the file named after it; `stream` hands them to Spark, and
`batch` runs the same functions in one process for tests and benchmarks.
"""

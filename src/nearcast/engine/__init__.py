"""The data path: route, work, merge, commit, deliver.

Each stage is a plain function over Arrow tables, in the file named after it; `spark.stream` hands them to Spark,
and `local` runs the same functions in one process.
"""

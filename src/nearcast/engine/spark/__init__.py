"""The batch on Spark: session, streaming query, data source, executors. The only place with PySpark."""

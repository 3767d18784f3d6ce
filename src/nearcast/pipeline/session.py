"""A Spark session that suits the pipeline, on this machine or on a cluster."""

import os
import sys

from pyspark.sql import SparkSession

from nearcast.model.errors import NearcastError

SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # a worker is a partition: none may be coalesced
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8",  # a record is a packet of up to 8 MB
    "spark.shuffle.compress": "false",  # packets hold hashes and short texts: time lost, little won
    "spark.shuffle.spill.compress": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}


def local_session(cores: int, memory: str = "3g") -> SparkSession:
    """Spark inside this process. `local[N,4]`: with plain `local[N]` one killed Python worker ends the query."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores},4]").appName("nearcast").config("spark.driver.memory", memory)
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise NearcastError(
            f"Spark did not start: {str(error).splitlines()[0]} (it needs Java 17 or later in JAVA_HOME or PATH)"
        ) from error
    spark.sparkContext.setLogLevel("OFF")
    return spark

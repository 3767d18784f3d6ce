"""A Spark session that suits the pipeline, on this machine or on a cluster."""

import contextlib
import logging
import os
import sys
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from nearcast.common.errors import NearcastError

SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # a worker is a partition: none may be coalesced
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",  # no record batch is larger
    # The checkpoint's files without a checksum file beside each: every file costs a few processes (chmod) of the JVM's.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.shuffle.compress": "false",  # packets hold hashes and short texts: time lost, little won
    "spark.shuffle.spill.compress": "false",
    "spark.python.daemon.module": "nearcast.engine.spark.daemon",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}

DEEP = "-Xss4m"  # a stopped query may overflow a smaller stack, and says so in a thousand lines
QUICK = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {DEEP}"  # a JVM that starts 6 s sooner; it only passes names on


def prime(spark: SparkSession) -> None:
    """Run a job of nothing, so that Python workers are there, their imports done, when the first batch wants them.

    It only saves time: where it fails, most likely because the run is being stopped, nothing is amiss.
    """
    with contextlib.suppress(Exception):
        spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long").collect()


def local_session(cores: int, memory: str = "3g", log: Path | None = None, quick: bool = True) -> SparkSession:
    """Spark inside this process. `local[N,4]`: with plain `local[N]` one killed Python worker ends the query.

    With a file `log`, what the JVM and the Python workers say goes to that file and not to the terminal, and the JVM is
    one for runs of the pipeline, `quick` to start; Spark SQL's own work takes longer in that one.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    conf = SparkConf().setMaster(f"local[{cores},4]").setAppName("nearcast").set("spark.driver.memory", memory)
    conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
    conf.setAll(list(SETTINGS.items()))
    if log is not None:
        conf.set("spark.driver.extraJavaOptions", QUICK if quick else DEEP)
    try:
        if log is not None and SparkContext._gateway is None:
            start_jvm(conf, log)
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as error:
        raise NearcastError(
            f"Spark did not start: {str(error).splitlines()[0]} (it needs Java 17 or later in JAVA_HOME or PATH)"
        ) from error
    spark.sparkContext.setLogLevel("OFF")
    return spark


def start_jvm(conf: SparkConf, log: Path) -> None:
    """Start the JVM apart from the terminal: its words go to `log`, and a Ctrl-C does not reach its Python workers."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as out:
        gateway = launch_gateway(conf, {"stdout": out, "stderr": out, "start_new_session": True})
    SparkContext._ensure_initialized(gateway=gateway)

"""What Spark SQL does with the same question as a batch job: the joins that `bench pipeline` compares with.

Both get the words of the posts already cut and hashed, and both may use every rule of Spark's optimiser.
"""

import time
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

INSIDE = """lat BETWEEN min_lat AND max_lat AND
    CASE WHEN min_lon <= max_lon THEN lon BETWEEN min_lon AND max_lon ELSE lon >= min_lon OR lon <= max_lon END"""


def word_join(spark: SparkSession, posts: Path, subscriptions: Path) -> tuple[int, float]:
    """(matches, seconds): posts exploded by word, joined with subscriptions on the word, filtered by box."""
    wanted = spark.read.parquet(str(subscriptions)).withColumnRenamed("id", "query")
    return counted(spark, exploded(spark, posts).join(wanted, "term").where(INSIDE))


def cell_join(spark: SparkSession, posts: Path, subscriptions: Path, cell: tuple[float, float]) -> tuple[int, float]:
    """(matches, seconds): the same on the word and a cell of a grid, about `cell` (degrees) wide and high."""
    columns, rows = max(1, int(360 / cell[0])), max(1, int(180 / cell[1]))
    wanted = spark.read.parquet(str(subscriptions)).withColumnRenamed("id", "query")
    west, east = number(F.col("min_lon"), -180, 360, columns), number(F.col("max_lon"), -180, 360, columns)
    south, north = number(F.col("min_lat"), -90, 180, rows), number(F.col("max_lat"), -90, 180, rows)
    wide = F.when(F.col("min_lon") <= F.col("max_lon"), east).otherwise(east + columns)
    wanted = wanted.withColumn("x", F.explode(F.sequence(west, wide))).withColumn("x", F.col("x") % columns)
    wanted = wanted.withColumn("y", F.explode(F.sequence(south, north))).dropDuplicates(["query", "x", "y"])
    placed = exploded(spark, posts)
    placed = placed.withColumn("x", number(F.col("lon"), -180, 360, columns))
    placed = placed.withColumn("y", number(F.col("lat"), -90, 180, rows))
    return counted(spark, placed.join(wanted, ["term", "x", "y"]).where(INSIDE))


def exploded(spark: SparkSession, posts: Path) -> DataFrame:
    """A row for each distinct word of each post."""
    table = spark.read.parquet(str(posts))
    return table.select("id", "lon", "lat", F.explode(F.array_distinct("terms")).alias("term"))


def number(value: Column, begin: float, span: float, cells: int) -> Column:
    """The number of a coordinate's cell, the last one for the far border."""
    return F.least(F.floor((value - begin) / span * cells).cast("int"), F.lit(cells - 1))


def counted(spark: SparkSession, pairs: DataFrame) -> tuple[int, float]:
    """(distinct pairs, seconds it took to find them), with adaptive execution, which the pipeline turns off."""
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        began = time.perf_counter()
        count = pairs.select("query", "id").distinct().count()
        return count, time.perf_counter() - began
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", before or "false")

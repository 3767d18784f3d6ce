"""The process from which Spark forks its Python workers, with what they will need already imported.

A worker would otherwise spend its first seconds on imports. (`spark.python.daemon.module` names this one.)
"""

import sys

if __name__ == "__main__":
    if "pyspark.worker" in sys.argv:
        from nearcast.engine.freed_memory import keep_freed_memory

        keep_freed_memory()
    from pyspark.daemon import manager

    manager()

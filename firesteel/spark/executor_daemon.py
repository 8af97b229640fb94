"""Starts the worker daemon on an executor of a cluster, where Firesteel is not installed.

The file travels alone. Spark puts it into the working directory of the executor, together with the
packages, before the first task. If the daemon cannot be loaded, PySpark's own does its work.
"""

import os
import sys

PACKAGES = "firesteel-executor-packages.zip"


def main() -> None:
    sys.path.insert(0, os.path.abspath(PACKAGES))
    try:
        from firesteel.spark.worker_daemon import prepare

        prepare()
    except Exception as error:  # noqa: BLE001 - tasks run without it
        sys.stderr.write(f"Firesteel's worker daemon cannot be loaded: {error!r}\n")
    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    main()

"""An archive of the Java classes that Spark loads, with which Spark's JVM starts faster.

Each Java and each Spark have an archive in the cache directory of the user. It is written at the end
of the second program on a machine, which takes some seconds. So a container that runs one program
and is deleted spends no time on it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

_log = logging.getLogger("firesteel")

_SECONDS_KEPT = 60 * 24 * 3600.0
# A Java that does not know the option starts without it.
_RECORDING = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+RecordDynamicDumpInfo")
# A JVM that cannot use an archive says so on standard output, which belongs to the program.
_SILENT = ("-Xlog:disable", "-Xlog:all=error:stderr")


class ClassArchive:
    """The archive of one Java and the installed Spark."""

    def __init__(self, java: Path, directory: Path | None = None) -> None:
        spark = Path(pyspark.__file__).parent
        known = (str(java.resolve()), _modified(java), str(spark), pyspark.__version__)
        name = hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
        self._directory = _cache_directory() if directory is None else directory
        self.file = self._directory / f"spark-{name}.jsa"
        self._seen = self.file.with_suffix(".seen")
        self._failed = self.file.with_suffix(".failed")
        # The JVM that starts next keeps notes about its classes.
        self.is_wanted = False

    def java_options(self) -> tuple[str, ...]:
        """Return the options of a JVM that starts now."""
        try:
            if self.file.exists():
                # It is in use, so no later program deletes it as old.
                os.utime(self.file)
                return (f"-XX:SharedArchiveFile={self.file}", *_SILENT)
            if self._failed.exists():
                return ()
            if self._seen.exists():
                self.is_wanted = True
                return (*_RECORDING, *_SILENT)
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._seen.touch()
        except OSError as error:
            _log.debug("no archive of classes in %s: %s", self._directory, error)
        return ()

    def write(self, session: SparkSession) -> None:
        """Write the classes that the JVM of this session has loaded, if its options allow that."""
        if not self.is_wanted:
            return
        self.is_wanted = False
        unfinished = self.file.with_suffix(f".{os.getpid()}.new")
        if sys.stderr.isatty():
            sys.stderr.write("archiving the classes of Spark once, so that programs start faster\n")
        try:
            _dump(session, unfinished)
            unfinished.rename(self.file)
            self._remove_old()
        except Exception as error:  # noqa: BLE001 - it saves time only; a Java may be unable to do it
            _log.debug("no archive of classes was written: %s", error)
            with suppress(OSError):
                # Later programs must not spend their time on it, too.
                self._failed.touch()
        finally:
            with suppress(OSError):
                unfinished.unlink()

    def _remove_old(self) -> None:
        """Remove archives that no program has used for a long time."""
        for file in self._directory.glob("spark-*"):
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > _SECONDS_KEPT:
                    file.unlink()


def _dump(session: SparkSession, file: Path) -> None:
    """Run the diagnostic command ``VM.cds dynamic_dump`` in the JVM."""
    jvm: Any = session._jvm  # noqa: SLF001 - no public way
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - no public way
    find = jvm.java.lang.Class.forName

    def array(kind: Any, *values: Any) -> Any:
        made = gateway.new_array(kind, len(values))
        for place, value in enumerate(values):
            made[place] = value
        return made

    texts, objects = "[Ljava.lang.String;", "[Ljava.lang.Object;"
    parameters = ("javax.management.ObjectName", "java.lang.String", objects, texts)
    # By reflection: the class of the server is in a module that is not open to py4j.
    invoke = find("javax.management.MBeanServer").getMethod(
        "invoke", array(jvm.Class, *map(find, parameters))
    )
    # The command would print a line of its own, on the standard output of the program.
    jvm.System.setOut(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))
    command = array(jvm.String, "dynamic_dump", str(file))
    answer = invoke.invoke(
        jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer(),
        array(
            jvm.Object,
            jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand"),
            "vmCds",
            array(jvm.Object, command),
            array(jvm.String, texts),
        ),
    )
    if not file.exists():
        raise OSError(str(answer))


def _cache_directory() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    if home:
        return Path(home, "firesteel")
    try:
        return Path.home() / ".cache" / "firesteel"
    except RuntimeError:
        # A user without a home directory, as in some containers, has no cache: no file can be here.
        return Path(os.devnull, "firesteel")


def _modified(file: Path) -> str:
    try:
        return str(file.resolve().stat().st_mtime_ns)
    except OSError:
        return ""

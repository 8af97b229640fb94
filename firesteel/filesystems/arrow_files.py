"""File systems of URIs, through pyarrow."""

from __future__ import annotations

from pyarrow import fs

__all__ = ["file_system_of", "reason_of_refusal"]


def file_system_of(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URI and the path within it; what pyarrow raises is short."""
    try:
        file_system, path = fs.FileSystem.from_uri(uri)
    except OSError as error:
        raise OSError(reason_of_refusal(error)) from None
    return file_system, path


def reason_of_refusal(error: OSError) -> str:
    """In one sentence: pyarrow names every place where it has looked for a library."""
    text = str(error)
    if "libjvm" in text or "libhdfs" in text:
        return (
            "hdfs:// needs Java's libjvm and Hadoop's libhdfs, and one of them was not found; "
            "set JAVA_HOME and HADOOP_HOME, and CLASSPATH to what `hadoop classpath --glob` prints"
        )
    return text

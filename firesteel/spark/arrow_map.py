"""mapInArrow without pandas.

``DataFrame.mapInArrow`` builds its function with ``pandas_udf``, which insists on pandas being
installed although none of it is used. The same function is built here directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

ArrowFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: DataFrame, function: ArrowFunction, schema: StructType | str) -> DataFrame:
    udf = UserDefinedFunction(
        function,
        returnType=schema,
        evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF,
        name=type(function).__name__,
    )
    column = udf(*[frame[name] for name in frame.columns])
    # DataFrame.mapInArrow needs pandas. This is its body without that check.
    mapped = frame._jdf.mapInArrow(column._jc, False, None)  # noqa: SLF001 - as PySpark does it
    return DataFrame(mapped, frame.sparkSession)

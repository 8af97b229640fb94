"""The only package that imports pyspark: session, clock, levels, queries, DataFrames."""

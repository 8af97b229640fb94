"""The translation of a program: transformations, stream graph, job graph, levels.

This package consists of immutable data and pure functions. It does not run jobs, and does not
know Spark.
"""

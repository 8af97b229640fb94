"""From what the user wrote to what Spark runs: transformations, stream graph, job graph, levels.

Immutable data and pure functions; nothing here runs a job or knows Spark.
"""

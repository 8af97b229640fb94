"""Test harness for functions, operators, time and failures, without Spark."""

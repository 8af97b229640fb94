"""The soak: a job that lives through random faults on real Spark while its resources are watched."""

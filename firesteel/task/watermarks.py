"""The two ends of event time."""

MIN_WATERMARK = -(2**63)
MAX_WATERMARK = 2**63 - 1

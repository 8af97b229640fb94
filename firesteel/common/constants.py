"""Limits of Java's long, which Flink uses for timestamps."""

from __future__ import annotations

MAX_LONG_VALUE = 0x7FFF_FFFF_FFFF_FFFF
MIN_LONG_VALUE = -MAX_LONG_VALUE - 1
DEFAULT_OUTPUT_TAG = ""


MIN_WATERMARK = -(2**63)
MAX_WATERMARK = 2**63 - 1

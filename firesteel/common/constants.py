"""Limits of Java's long, the type of Flink's timestamps and watermarks."""

from __future__ import annotations

MAX_LONG_VALUE = 0x7FFF_FFFF_FFFF_FFFF
MIN_LONG_VALUE = -MAX_LONG_VALUE - 1
DEFAULT_OUTPUT_TAG = ""

MIN_WATERMARK = MIN_LONG_VALUE
MAX_WATERMARK = MAX_LONG_VALUE

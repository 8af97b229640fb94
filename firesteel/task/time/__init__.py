"""Event time and processing time in a subtask: watermarks, clocks and timers."""

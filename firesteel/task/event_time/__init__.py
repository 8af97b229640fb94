"""Event time at work: timestamps, watermark generators, and how channels' watermarks combine."""

"""Settings. Each setting is declared once, in options.py or one of the modules ``*_options.py``."""

from firesteel.config.check import check_keys
from firesteel.config.option import Option
from firesteel.config.options import ALL_OPTIONS

__all__ = ["ALL_OPTIONS", "Option", "check_keys"]

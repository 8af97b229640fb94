"""DataGeneratorSource and its rate limits, under PyFlink's import path."""

from firesteel.connectors.datagen import DataGeneratorSource, RateLimiter, RateLimiterStrategy

__all__ = ["DataGeneratorSource", "RateLimiter", "RateLimiterStrategy"]

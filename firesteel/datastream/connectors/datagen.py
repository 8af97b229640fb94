"""DataGeneratorSource and its rate limits."""

from firesteel.connectors.datagen import DataGeneratorSource, RateLimiter, RateLimiterStrategy

__all__ = ["DataGeneratorSource", "RateLimiter", "RateLimiterStrategy"]

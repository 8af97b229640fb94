"""Nexmark: queries over an auction site, the common benchmark of stream processors."""

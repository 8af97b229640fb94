"""The engines that Nexmark compares. Each runs in its own process and environment."""

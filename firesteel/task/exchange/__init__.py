"""Exchanges between subtasks: input gates, record writers and buffers."""

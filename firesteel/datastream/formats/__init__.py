"""Formats of files and messages, under PyFlink's import path."""

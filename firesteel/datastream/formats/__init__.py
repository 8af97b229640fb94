"""Formats of files and messages: none in this version; importing one says so."""

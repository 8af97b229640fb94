"""The protocol between driver and slots: rows, messages and the packed program."""

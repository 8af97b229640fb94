"""The hashmap backend, which keeps state in dictionaries. It is fast, and limited by memory."""

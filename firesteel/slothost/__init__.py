"""Slot hosts: resident processes that keep slots between epochs, and the way Spark tasks reach them."""

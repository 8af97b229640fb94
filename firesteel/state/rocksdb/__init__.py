"""The rocksdb backend, for state larger than memory. It needs the extra ``rocksdb``."""

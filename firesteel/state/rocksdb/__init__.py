"""State kept in RocksDB on local disk: larger than memory. Needs the extra ``rocksdb``."""

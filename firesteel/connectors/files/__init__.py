"""The file connector: FileSource and FileSink."""

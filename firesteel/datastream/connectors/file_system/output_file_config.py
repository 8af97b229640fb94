"""OutputFileConfig: how part files are called."""

from __future__ import annotations

__all__ = ["OutputFileConfig"]


class OutputFileConfig:
    """Prefix and suffix of part files: ``<prefix>-<uid>-<counter><suffix>``."""

    def __init__(self, part_prefix: str, part_suffix: str) -> None:
        for text in (part_prefix, part_suffix):
            if "/" in text:
                raise ValueError(f"A part file's name cannot contain '/': {text!r}")
        self._part_prefix = part_prefix
        self._part_suffix = part_suffix

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        return self._part_prefix

    def get_part_suffix(self) -> str:
        return self._part_suffix

    class OutputFileConfigBuilder:
        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            return OutputFileConfig(self.part_prefix, self.part_suffix)

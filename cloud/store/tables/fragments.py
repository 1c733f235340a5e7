"""Fragments: parts of configurations that many machines share."""

from typing import Final

TABLES: Final = ""

"""The registry: modules and other packages, with their versions."""

from typing import Final

TABLES: Final = ""

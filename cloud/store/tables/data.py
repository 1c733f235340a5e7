"""What machines have captured: files, readings, datasets."""

from typing import Final

TABLES: Final = ""

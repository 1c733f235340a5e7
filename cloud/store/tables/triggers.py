"""Triggers: what happened, what is to be delivered, what was."""

from typing import Final

TABLES: Final = ""

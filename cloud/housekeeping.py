"""What expires: looked for once in a while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from cloud import logs, watching
from cloud.store.sql import Sql

CHORES: Final[tuple[tuple[str, Callable[[Sql, datetime], int]], ...]] = (
    ("log entries", logs.expire),
    ("snapshots of machines", watching.expire),
)
"""What expires, and the transaction that removes it: how many there were."""

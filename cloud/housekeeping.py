"""What expires: looked for once in a while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from cloud import credentials, invites, logs, watching
from cloud.certificates import authorities
from cloud.data import readings, retention
from cloud.store.sql import Sql
from cloud.triggering import deliveries, queue

CHORES: Final[tuple[tuple[str, Callable[[Sql, datetime], int]], ...]] = (
    ("log entries", logs.expire),
    ("captured data", retention.expire),
    ("notes of uploads", readings.forget_uploads),
    ("snapshots of machines", watching.expire),
    ("deliveries", deliveries.expire),
    ("notes of deleted parts", queue.forget),
    ("invitations", invites.expire),
    ("authorities", authorities.expire),
    ("sessions that were signed out", credentials.expire),
)
"""What expires, and the transaction that removes it: how many there were."""

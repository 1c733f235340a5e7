"""Seeds of the keys with which the cloud signs releases of an organization itself. `releases.own` uses them."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Final

from cloud.store.sql import Sql
from cloud.values.times import stored

_SEED: Final = 32  # bytes


def replace_seeds(sql: Sql, owner: str, now: datetime) -> tuple[str, str]:
    """Store new seeds for root and targets in place of former ones, and return them in hexadecimal digits."""
    root, targets = secrets.token_hex(_SEED), secrets.token_hex(_SEED)
    sql.run(
        "INSERT INTO own_release_keys (organization_id, root_key, targets_key, created) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (organization_id) DO UPDATE SET root_key = excluded.root_key, "
        "targets_key = excluded.targets_key, created = excluded.created",
        owner,
        root,
        targets,
        stored(now),
    )
    return root, targets

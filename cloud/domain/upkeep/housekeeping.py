"""Regular deletion of expired data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from cloud.domain.alerts import history, states
from cloud.domain.certificates import authorities
from cloud.domain.data import readings, retention
from cloud.domain.fleet import watching
from cloud.domain.machines import install_codes, log_counts, logs, signalling
from cloud.domain.people import invites
from cloud.domain.permissions import credentials
from cloud.domain.releases import files as releases
from cloud.domain.releases import requests
from cloud.domain.training import jobs as training
from cloud.domain.triggering import deliveries, queue
from cloud.domain.upkeep import set_clock
from cloud.store.sql import Sql

CHORES: Final[tuple[tuple[str, Callable[[Sql, datetime], int]], ...]] = (
    ("log entries", logs.expire),
    ("counts of log entries", log_counts.expire),
    ("captured data", retention.expire),
    ("records of uploads", readings.forget_uploads),
    ("snapshots of machines", watching.expire),
    ("deliveries", deliveries.expire),
    ("records of deleted parts", queue.forget),
    ("invitations", invites.expire),
    ("authorities", authorities.expire),
    ("unused files of releases", releases.expire),
    ("requests to agents", requests.expire),
    ("codes that install machines", install_codes.expire),
    ("connection attempts", signalling.expire),
    ("logs of training jobs", training.expire),
    ("events of alerts", history.expire),
    ("states of alerts", states.expire),
    ("logged-out sessions", credentials.expire),
    ("deadlines that a wrong clock has set", set_clock.correct),
)
"""Kinds of data that expire, each with the transaction that deletes some and returns their number."""

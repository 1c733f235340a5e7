"""Permission checks by rule for requests that are addressed by path, not by method."""

from __future__ import annotations

from cloud.domain.permissions.access import require
from cloud.domain.permissions.rules import AccessRule
from cloud.services.common.base import Cloud
from cloud.store.sql import Sql
from cloud.values.author import Author
from schema import ErrorKind, MachineError


async def admit(cloud: Cloud, author: Author, rule: AccessRule, subject: str) -> None:
    """Raise the error of `access.require` unless `rule` admits the caller to `subject`."""
    await cloud.store.read(lambda sql: _require(sql, author, rule, subject))


def _require(sql: Sql, author: Author, rule: AccessRule, subject: str) -> None:
    assert rule.of is not None
    try:
        require(sql, author, rule.role, rule.of, subject, home=rule.home)
    except MachineError as error:
        if rule.otherwise is None or error.kind is not ErrorKind.NOT_FOUND:
            raise
        require(sql, author, rule.role, rule.otherwise, subject, home=rule.home)

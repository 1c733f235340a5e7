"""What clients must trust, as one file: the roots in PEM, each with a comment that says whose it is."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from cloud.certificates.authorities import PORT, Authority, trusted
from cloud.certificates.issue import ends_of, fingerprint, subject_of
from cloud.store.sql import Sql
from cloud.tenants import organization


def bundle(sql: Sql, scopes: Iterable[str], now: datetime) -> str:
    """The roots of `scopes`, those included that were replaced but count still; none for a scope without authority."""
    text = ""
    for scope in scopes:
        whose = "the cloud itself" if scope == PORT else f"machines of {_called(organization(sql, scope).name, scope)}"
        text += "".join(_entry(one, whose) for one in trusted(sql, scope, now))
    return text


def _entry(one: Authority, whose: str) -> str:
    root = one.pair.certificate
    until = f"{one.ends:%Y-%m-%d}, as it was replaced" if one.ends is not None else f"{ends_of(root):%Y-%m-%d}"
    return f"# {subject_of(root)}: {whose}, until {until}\n# SHA-256 {fingerprint(root)}\n{root}"


def _called(name: str, subject: str) -> str:
    """An organization in a comment, which is ASCII and ends with its line."""
    return f"{name} ({subject})" if name.isascii() and name.isprintable() else subject

"""The roots that clients must trust, as one PEM file with a comment on each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from cloud.domain.certificates.authorities import PORT, Authority, trusted
from cloud.domain.certificates.issue import ends_of, fingerprint, subject_of
from cloud.domain.organizations.tenants import organization
from cloud.store.sql import Sql


def bundle(sql: Sql, scopes: Iterable[str], now: datetime) -> str:
    """Return the trusted roots of `scopes`, including replaced ones; a scope without an authority adds nothing."""
    text = ""
    for scope in scopes:
        owner = "the cloud itself" if scope == PORT else f"machines of {_label(organization(sql, scope).name, scope)}"
        text += "".join(_entry(authority, owner) for authority in trusted(sql, scope, now))
    return text


def _entry(authority: Authority, owner: str) -> str:
    root = authority.pair.certificate
    until = (
        f"{authority.ends:%Y-%m-%d}, because it was replaced"
        if authority.ends is not None
        else f"{ends_of(root):%Y-%m-%d}"
    )
    return f"# {subject_of(root)}: {owner}, until {until}\n# SHA-256 {fingerprint(root)}\n{root}"


def _label(name: str, subject: str) -> str:
    """Return an organization's label for a comment, which must be ASCII and a single line."""
    return f"{name} ({subject})" if name.isascii() and name.isprintable() else subject

"""Documents as they leave the cloud: the only place that decides who reads the secrets in them.

Configurations, fragments and metadata hold passwords, keys and the URLs of webhooks. Owners read them, because they
save the documents, and so does the machine that runs a configuration. For everybody else the secrets are masked. What
is sent to callers has the type Shown or ShownText, and only this module makes values of these types: a message that is
given a document as it is kept does not pass the type checker.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NewType

from cloud.access import Of, Role, place_of, role_at
from cloud.author import Author
from cloud.store.sql import Sql
from schema.secrets import Masker

Shown = NewType("Shown", Mapping[str, Any])
"""A document as one caller may read it."""

ShownText = NewType("ShownText", str)
"""The same as JSON text."""


def nothing() -> Shown:
    """An empty document."""
    return Shown({})


def reads_secrets(sql: Sql, author: Author, of: Of, subject: str) -> bool:
    """Whether somebody reads the secrets of a thing: its owners, also those of an organization that it is shared with,
    and the machine itself. NOT_FOUND if there is no such thing."""
    return role_at(sql, author, place_of(sql, of, subject)) in (Role.OWNER, Role.MACHINE)


def shown(document: Mapping[str, Any], *, whole: bool, beside: Iterable[Mapping[str, Any]] = ()) -> Shown:
    """A document for somebody who `reads_secrets`, or for everybody else. The secrets of the documents that are shown
    `beside` it, such as its other revisions, are masked in it too."""
    if whole:
        return Shown(document)
    masker = Masker()
    for one in (*beside, document):
        masker = masker.and_those_of(one)
    return Shown(masker.value(document))


def shown_text(text: str, *, whole: bool) -> ShownText:
    """As `shown`, of a document that is kept as JSON text: for owners it is exactly what was saved."""
    return ShownText(text) if whole else text_of(shown(json.loads(text or "{}"), whole=False))


def text_of(document: Shown) -> ShownText:
    """A document as JSON text."""
    return ShownText(json.dumps(document, ensure_ascii=False))

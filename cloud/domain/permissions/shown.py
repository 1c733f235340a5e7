"""Masking of documents that leave the cloud; the only place that decides who can read the secrets in them.

Configurations, fragments and metadata contain passwords, keys and webhook URLs. Owners can read these, because they
save the documents, and so can the machine that runs a configuration. For all other callers the secrets are masked. Data
for callers have the type Shown or ShownText, and only this module creates values of these types, so the type checker
rejects a message that contains an unmasked document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NewType

from cloud.domain.permissions.access import ObjectKind, Role, place_of, role_at
from cloud.store.sql import Sql
from cloud.values.author import Author
from schema import Masker

Shown = NewType("Shown", Mapping[str, Any])
"""A document as one caller may read it."""

ShownText = NewType("ShownText", str)
"""JSON text of a document as one caller may read it."""


def empty() -> Shown:
    """Return an empty document."""
    return Shown({})


def reads_secrets(sql: Sql, author: Author, of: ObjectKind, subject: str) -> bool:
    """Return whether a caller can read the secrets of an object. NOT_FOUND if the object does not exist.

    Its owners can, including owners in organizations that it is shared with, and so can the machine itself.
    """
    return role_at(sql, author, place_of(sql, of, subject)) in (Role.OWNER, Role.MACHINE)


def shown(document: Mapping[str, Any], *, whole: bool, alongside: Iterable[Mapping[str, Any]] = ()) -> Shown:
    """Return a document, `whole` for a caller for whom `reads_secrets` is True, otherwise masked.

    Secrets of the documents shown `alongside` it, such as its other revisions, are masked in it too.
    """
    if whole:
        return Shown(document)
    masker = Masker()
    for each_document in (*alongside, document):
        masker = masker.and_those_of(each_document)
    return Shown(masker.value(document))


def shown_text(text: str, *, whole: bool) -> ShownText:
    """Return a stored JSON text, unchanged if `whole`, otherwise masked as by `shown`."""
    return ShownText(text) if whole else text_of(shown(json.loads(text or "{}"), whole=False))


def text_of(document: Shown) -> ShownText:
    """Return a document as JSON text."""
    return ShownText(json.dumps(document, ensure_ascii=False))

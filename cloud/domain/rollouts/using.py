"""Whether the configuration of a part uses a fragment in such a way that a rollout of it concerns the part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud.documents import resolve
from cloud.domain.configurations import configurations, fragments
from cloud.store.sql import Sql

Documents = dict[tuple[str, int], Mapping[str, Any]]
"""Documents of fragments by id and revision, which the configurations of many parts have in common."""


def uses_fragment(sql: Sql, owner: str, part: str, named: tuple[str, str], documents: Documents) -> bool:
    """Return whether the configuration of a part of an organization names a fragment, given by id and tag, also in
    other fragments; the tag is empty for a fragment without a version. Adds what it reads to `documents`.
    """
    seen = False

    def find(subject: str, version: str) -> resolve.Fragment | None:
        nonlocal seen
        seen = seen or (subject, version) == named
        revision = fragments.usable(sql, owner, subject, version, part)
        if revision is None:
            return None
        key = subject, revision
        if key not in documents:
            documents[key] = fragments.document_of(sql, subject, revision)
        return resolve.Fragment(subject, revision, documents[key])

    resolve.resolve(configurations.current(sql, part)[1], find)
    return seen

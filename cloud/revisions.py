"""One save of a document that is kept in revisions: of a machine's configuration, or of a fragment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cloud.author import Author
from cloud.times import moment_of


@dataclass(frozen=True, slots=True)
class Revision:
    """One save. `before` is the document that it replaced; None for the first one."""

    number: int
    document: Mapping[str, Any]
    saved: datetime
    author: Author
    before: Mapping[str, Any] | None


def revision_in(row: Mapping[str, Any]) -> Revision:
    """A row of `revision`, `document`, `saved`, `author_type`, `author` and, the document before it, `before`."""
    return Revision(
        row["revision"],
        json.loads(row["document"]),
        moment_of(row["saved"]),
        Author(row["author_type"], row["author"]),
        json.loads(row["before"]) if row["before"] is not None else None,
    )

"""Messages of machine.cloud.v1.HistoryService."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from cloud.domain.permissions.shown import ShownText


class Revision(Struct, frozen=True):
    """A save. `author` is a name for display; `author_type` and `author_id` identify the author, such as a key."""

    revision: int
    saved: datetime
    author: str
    author_type: str
    author_id: str
    document_json: ShownText

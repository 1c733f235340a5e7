"""Table of the snapshots that machines send while they are viewed."""

from typing import Final

TABLES: Final = """
CREATE TABLE live (
    part_id TEXT PRIMARY KEY,
    watched INTEGER NOT NULL,  -- until when somebody looks
    told INTEGER,  -- when the machine told last; NULL before it did
    snapshot TEXT NOT NULL DEFAULT '{}'  -- JSON
);
"""

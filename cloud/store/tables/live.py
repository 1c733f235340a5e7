"""Table of the snapshots that machines send while they are viewed."""

from typing import Final

TABLES: Final = """
CREATE TABLE live (
    part_id TEXT PRIMARY KEY,
    watched INTEGER NOT NULL,  -- end of the announcement by a viewer
    told INTEGER,  -- when the machine sent the snapshot; NULL before the first one
    snapshot TEXT NOT NULL DEFAULT '{}'  -- JSON
);
"""

"""Table of files without rows, which are kept for a while: see cloud/store/trash.py."""

from typing import Final

TABLES: Final = """
CREATE TABLE trash (
    blob TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    deleted INTEGER NOT NULL  -- 1: a row that named it was deleted; 0: it was in the store and no row named it
);
CREATE INDEX trash_since ON trash (since);
"""

"""Tables of certificate authorities and of machine certificates."""

from typing import Final

TABLES: Final = """
CREATE TABLE authorities (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,  -- id of an organization, for its machines; '' for the cloud's own port
    certificate TEXT NOT NULL,  -- PEM
    private_key TEXT NOT NULL,  -- PEM
    cross_signed TEXT NOT NULL,  -- PEM: its key as signed by the one before it; '' for none
    created INTEGER NOT NULL,
    ends INTEGER  -- when it is trusted no more; NULL for the one that signs
);
CREATE INDEX authorities_scope ON authorities (scope);
CREATE TABLE part_certificates (
    part_id TEXT PRIMARY KEY,
    authority INTEGER NOT NULL,  -- authorities.number
    names TEXT NOT NULL,  -- JSON
    chain TEXT NOT NULL,  -- PEM
    private_key TEXT NOT NULL,  -- PEM
    created INTEGER NOT NULL
);
"""

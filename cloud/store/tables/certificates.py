"""Tables of certificate authorities and of machine certificates."""

from typing import Final

TABLES: Final = """
CREATE TABLE authorities (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,  -- id of an organization, for its machines; '' for the cloud's own port
    certificate TEXT NOT NULL,  -- PEM
    private_key TEXT NOT NULL,  -- PEM
    cross_signed TEXT NOT NULL,  -- PEM: its key signed by its predecessor; '' if none
    created INTEGER NOT NULL,
    ends INTEGER  -- end of trust; NULL for the signing authority
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

"""Tables of requests to agents."""

from typing import Final

TABLES: Final = """
CREATE TABLE agent_requests (
    part_id TEXT NOT NULL REFERENCES parts (id),
    kind TEXT NOT NULL,  -- check or update
    program TEXT NOT NULL,  -- of an update
    id TEXT NOT NULL,
    requested INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (part_id, kind, program)
);
"""

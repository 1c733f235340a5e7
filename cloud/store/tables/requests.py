"""Tables of requests to agents, and of codes that install them."""

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

CODES: Final = """
CREATE TABLE install_codes (
    id TEXT PRIMARY KEY,
    part_id TEXT NOT NULL REFERENCES parts (id),
    digest TEXT NOT NULL,  -- of the secret
    created INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    used INTEGER,
    claim TEXT NOT NULL,  -- digest of a random text of the computer that used it
    author_type TEXT NOT NULL,  -- who created it: it is void without the role
    author TEXT NOT NULL
);
CREATE INDEX install_codes_part ON install_codes (part_id);
CREATE INDEX install_codes_ends ON install_codes (ends);
"""

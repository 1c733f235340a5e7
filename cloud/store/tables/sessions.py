"""Tables of sessions of the pages: those that were logged out, and tickets that start one."""

from typing import Final

TABLES: Final = """
CREATE TABLE signed_out (
    token TEXT PRIMARY KEY,  -- its id
    ends INTEGER NOT NULL  -- seconds since 1970: expiry of the token
);
"""

TICKETS: Final = """
CREATE TABLE tickets (
    digest TEXT PRIMARY KEY,
    key_id TEXT NOT NULL,
    fingerprint TEXT NOT NULL,  -- of the key, as in its tokens
    ends INTEGER NOT NULL  -- seconds since 1970
);
CREATE INDEX tickets_by_key ON tickets (key_id);
"""

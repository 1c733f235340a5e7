"""Table of page tokens that were signed out."""

from typing import Final

TABLES: Final = """
CREATE TABLE signed_out (
    token TEXT PRIMARY KEY,  -- its id
    ends INTEGER NOT NULL  -- seconds since 1970: expiry of the token
);
"""

"""Tables of fragments: parts of configurations that many machines share."""

from typing import Final

TABLES: Final = """
CREATE TABLE fragments (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    visibility TEXT NOT NULL,  -- private, public or unlisted
    created INTEGER NOT NULL,
    revision INTEGER NOT NULL,  -- the newest: fragment_revisions.revision
    saved INTEGER NOT NULL,
    UNIQUE (organization_id, name)
);
CREATE TABLE fragment_revisions (
    fragment_id TEXT NOT NULL REFERENCES fragments (id),
    revision INTEGER NOT NULL,
    document TEXT NOT NULL,
    saved INTEGER NOT NULL,
    author_type TEXT NOT NULL,
    author TEXT NOT NULL,
    PRIMARY KEY (fragment_id, revision)
);
CREATE TABLE fragment_tags (
    fragment_id TEXT NOT NULL REFERENCES fragments (id),
    tag TEXT NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (fragment_id, tag)
);
CREATE TABLE fragment_uses (
    kind TEXT NOT NULL,  -- part or fragment
    subject TEXT NOT NULL,  -- its id: uses the fragment in the current configuration (part) or in any revision
    fragment_id TEXT NOT NULL,
    PRIMARY KEY (kind, subject, fragment_id)
);
CREATE INDEX fragment_uses_fragment ON fragment_uses (fragment_id);
"""

TEXTS: Final = """
CREATE TABLE written_texts (
    kind TEXT NOT NULL,  -- part or fragment
    subject TEXT NOT NULL,  -- its id
    content TEXT NOT NULL,  -- digest of the document that the text means
    text TEXT NOT NULL,  -- JSON with comments, as a person wrote it
    PRIMARY KEY (kind, subject, content)
);
"""
"""Texts of configurations and fragments as people wrote them."""

"""Tables of the registry: modules and other packages, with their versions."""

from typing import Final

TABLES: Final = """
CREATE TABLE registry_items (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    type TEXT NOT NULL,  -- archive, ml_model, module, slam_map or ml_training
    visibility TEXT NOT NULL,  -- private, public or public_unlisted
    url TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata TEXT NOT NULL,  -- JSON: fields of its type, such as a module's models
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    UNIQUE (organization_id, name)
);
CREATE TABLE registry_files (
    id TEXT PRIMARY KEY,  -- links name it
    item_id TEXT NOT NULL REFERENCES registry_items (id),
    version TEXT NOT NULL,
    platform TEXT NOT NULL,  -- such as linux/arm64, or any
    tags TEXT NOT NULL,  -- further requirements on the machine, sorted, with commas
    blob TEXT NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,  -- SHA-256, hexadecimal
    uploaded INTEGER NOT NULL,
    metadata TEXT NOT NULL,  -- JSON: of the item as it was at the upload
    UNIQUE (item_id, version, platform, tags)
);
"""

SEARCHES: Final = """
CREATE INDEX registry_files_blob ON registry_files (blob);
CREATE INDEX registry_files_uploaded ON registry_files (uploaded);
"""

"""Tables of captured data: files, readings, datasets."""

from typing import Final

QUERIES: Final = """
CREATE TABLE saved_queries (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    language TEXT NOT NULL,  -- sql or mql
    query TEXT NOT NULL,  -- of mql: the stages in BSON, in hexadecimal digits
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    UNIQUE (organization_id, name)
);
"""

TABLES: Final = """
CREATE TABLE data_sources (  -- where data came from, named as it was then; data outlive their machine
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,  -- digest of all the rest and of the tags
    organization_id TEXT NOT NULL,
    location_id TEXT NOT NULL,
    machine_id TEXT NOT NULL,
    machine TEXT NOT NULL,
    part_id TEXT NOT NULL,
    part TEXT NOT NULL,
    component_type TEXT NOT NULL,  -- last segment of the API: sensor
    component TEXT NOT NULL,
    method TEXT NOT NULL,
    parameters TEXT NOT NULL  -- of the method, JSON
);
CREATE INDEX data_sources_organization ON data_sources (organization_id);
CREATE INDEX data_sources_part ON data_sources (part_id);
CREATE TABLE data_source_tags (  -- tags of readings; files have their own
    source INTEGER NOT NULL REFERENCES data_sources (number),
    tag TEXT NOT NULL,
    PRIMARY KEY (source, tag)
);
CREATE TABLE data_uploads (  -- so that an upload of readings which is repeated adds nothing
    key TEXT PRIMARY KEY,
    file_id TEXT NOT NULL,
    synced INTEGER NOT NULL
);
CREATE INDEX data_uploads_synced ON data_uploads (synced);
CREATE TABLE readings (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL REFERENCES data_sources (number),
    requested INTEGER NOT NULL,
    received INTEGER NOT NULL,  -- by the machine
    synced INTEGER NOT NULL,  -- by the cloud
    data TEXT NOT NULL  -- JSON
);
CREATE INDEX readings_source ON readings (source, requested, number);
CREATE INDEX readings_synced ON readings (synced);
CREATE TABLE files (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL UNIQUE,  -- digest of what makes it the same upload
    source INTEGER NOT NULL REFERENCES data_sources (number),
    blob TEXT NOT NULL,  -- key in cloud.blobs
    digest TEXT NOT NULL,  -- SHA-256 of the content
    size INTEGER NOT NULL,
    type TEXT NOT NULL,  -- binary, file or unspecified
    name TEXT NOT NULL,
    extension TEXT NOT NULL,  -- with its dot
    mime TEXT NOT NULL,
    requested INTEGER NOT NULL,
    received INTEGER NOT NULL,
    synced INTEGER NOT NULL
);
CREATE INDEX files_source ON files (source, requested, number);
CREATE INDEX files_synced ON files (synced);
CREATE INDEX files_blob ON files (blob);
CREATE TABLE file_tags (
    file_id TEXT NOT NULL REFERENCES files (id),
    tag TEXT NOT NULL,
    PRIMARY KEY (file_id, tag)
);
CREATE INDEX file_tags_tag ON file_tags (tag);
CREATE TABLE file_labels (  -- a box, or a classification of the whole picture: all four edges NULL
    id TEXT PRIMARY KEY,
    file_id TEXT NOT NULL REFERENCES files (id),
    label TEXT NOT NULL,
    x_min REAL,  -- edges as fractions of width and height, 0 to 1
    y_min REAL,
    x_max REAL,
    y_max REAL,
    confidence REAL
);
CREATE INDEX file_labels_file ON file_labels (file_id);
CREATE TABLE datasets (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    created INTEGER NOT NULL,
    UNIQUE (organization_id, name)
);
CREATE TABLE dataset_files (
    dataset_id TEXT NOT NULL REFERENCES datasets (id),
    file_id TEXT NOT NULL REFERENCES files (id),
    PRIMARY KEY (dataset_id, file_id)
);
CREATE INDEX dataset_files_file ON dataset_files (file_id);
CREATE TABLE data_retention (
    organization_id TEXT PRIMARY KEY REFERENCES organizations (id),
    days INTEGER NOT NULL  -- data are kept so long after they arrived
);
"""

EXPIRY: Final = """
-- Retention differs between organizations: with an index by time alone, the old rows of one that keeps its data forever
-- would be read for each of the others.
CREATE INDEX readings_expiry ON readings (source, synced);
CREATE INDEX files_expiry ON files (source, synced);
DROP INDEX readings_synced;
DROP INDEX files_synced;
CREATE INDEX data_sources_location ON data_sources (location_id);
CREATE INDEX data_sources_machine ON data_sources (machine_id);
"""

TRASH: Final = """
-- Files without rows, which are kept for a while: cloud/store/trash.py.
CREATE TABLE trash (
    blob TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    deleted INTEGER NOT NULL  -- 1: a row that named it was deleted; 0: it was in the store and no row named it
);
CREATE INDEX trash_since ON trash (since);
"""

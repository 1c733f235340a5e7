"""Tables of people, invitations, and the shares and secrets of locations."""

from typing import Final

TABLES: Final = """
CREATE TABLE people (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,  -- in lower case
    created INTEGER NOT NULL
);
ALTER TABLE keys ADD COLUMN person_id TEXT REFERENCES people (id);
CREATE INDEX keys_person ON keys (person_id);
CREATE TABLE invites (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    email TEXT NOT NULL,  -- in lower case
    digest TEXT UNIQUE,  -- of the link that is valid; NULL before there is one
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    inviter TEXT NOT NULL,  -- id of the key
    inviter_name TEXT NOT NULL,
    mail TEXT NOT NULL,  -- none, waiting, sent or failed
    due INTEGER,  -- time of the next attempt to mail it; NULL if none
    tries INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (organization_id, email)
);
CREATE INDEX invites_due ON invites (due);
CREATE TABLE invite_grants (
    organization_id TEXT NOT NULL,
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    PRIMARY KEY (organization_id, email, kind, subject),
    FOREIGN KEY (organization_id, email) REFERENCES invites (organization_id, email)
);
CREATE TABLE location_shares (
    location_id TEXT NOT NULL REFERENCES locations (id),
    organization_id TEXT NOT NULL REFERENCES organizations (id),  -- never the owner of the location
    created INTEGER NOT NULL,
    PRIMARY KEY (location_id, organization_id)
);
CREATE INDEX location_shares_organization ON location_shares (organization_id);
CREATE TABLE location_secrets (
    id TEXT PRIMARY KEY,
    location_id TEXT NOT NULL REFERENCES locations (id),
    secret TEXT NOT NULL,
    created INTEGER NOT NULL
);
CREATE INDEX location_secrets_location ON location_secrets (location_id);
CREATE VIEW part_location_secrets AS  -- each part with the secrets of its location and of outer ones
    WITH RECURSIVE inside (secret, location_id) AS (
        SELECT secret, location_id FROM location_secrets
        UNION
        SELECT inside.secret, locations.id FROM locations JOIN inside ON locations.parent_id = inside.location_id
    )
    SELECT parts.id AS part_id, inside.secret AS secret
    FROM inside JOIN machines ON machines.location_id = inside.location_id
        JOIN parts ON parts.machine_id = machines.id;
"""

"""Certificates of machine parts.

Certificate and key are stored, so that repeated requests to any replica return the same pair until the names change, it
is due for renewal, or another authority signs. An hourly request therefore changes nothing. Storing the keys adds
little risk, because the authority's own key is stored in the same database.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cloud.domain.certificates.authorities import chain, current, signing_authority
from cloud.domain.certificates.issue import RENEW, CertificatePair, new_leaf
from cloud.store.sql import Sql
from cloud.values.times import stored

_STORED: Final = "SELECT authority, names, chain, private_key, created FROM part_certificates WHERE part_id = ?"


def stored_certificate(
    sql: Sql, part: str, organization: str, names: Sequence[str], now: datetime
) -> CertificatePair | None:
    """Return the stored certificate of a part if it is still valid for these names and this authority."""
    authority, row = signing_authority(sql, organization), sql.row(_STORED, part)
    if authority is None or row is None or row["authority"] != authority.number:
        return None
    if json.loads(row["names"]) != sorted(names) or not stored(now - RENEW) < row["created"] <= stored(now):
        return None
    return CertificatePair(row["chain"], row["private_key"])


def issued(sql: Sql, part: str, organization: str, names: Sequence[str], now: datetime) -> CertificatePair:
    """Return the part's stored certificate, or a new one for `names`. Its chain ends with the root."""
    stored_pair = stored_certificate(sql, part, organization, names, now)
    if stored_pair is not None:
        return stored_pair
    authority = current(sql, organization, now)
    leaf = new_leaf(authority.pair, names, now)
    pair = CertificatePair(leaf.certificate + chain(sql, organization, now), leaf.key)
    sql.run(
        """
        INSERT INTO part_certificates (part_id, authority, names, chain, private_key, created) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (part_id) DO UPDATE SET authority = excluded.authority, names = excluded.names,
            chain = excluded.chain, private_key = excluded.private_key, created = excluded.created
        """,
        part,
        authority.number,
        json.dumps(sorted(names)),
        pair.certificate,
        pair.key,
        stored(now),
    )
    return pair

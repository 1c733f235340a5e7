"""Proof that a cloud answers: an answer to a random number, authenticated with a key of the part. Pure.

`GET /connectivity/PART?nonce=NONCE` is answered without credentials, also for parts that do not exist, with JSON:
`nonce`, `time` (seconds since 1970 by the clock of the cloud) and `signature`. A device thus knows that the cloud, and
not a page of the network, has answered, even before its clock is right, when certificates cannot be verified. The key
comes with the answer to a report (machine.cloud.v1.AgentService/ReportAgent), over the authenticated connection.
"""

from __future__ import annotations

import hmac
import json
import re
from typing import Final

PATH: Final = "/connectivity/{part}"
NONCE: Final = "nonce"
MAX_ANSWER: Final = 1024  # bytes; an answer has some 200
_NONCE: Final = re.compile(r"[0-9a-f]{32,64}")
_PART: Final = re.compile(r"[0-9A-Za-z_-]{1,64}")
_PURPOSE: Final = "machine connectivity 1"  # so that no other signature with the same secret is valid here


def proof_key(secret: str, part: str) -> str:
    """Return the key of a part, in hexadecimal, from the secret of the cloud."""
    return _mac(secret.encode(), f"{_PURPOSE} key\n{part}")


def is_question(part: str, nonce: str) -> bool:
    """Return whether the cloud answers this: an id of at most 64 characters, and 32 to 64 hexadecimal digits."""
    return bool(_PART.fullmatch(part) and _NONCE.fullmatch(nonce))


def answer(key: str, nonce: str, now: int) -> dict[str, str | int]:
    """Return the answer of the cloud at `now` (seconds since 1970)."""
    return {"nonce": nonce, "time": now, "signature": _signature(key, nonce, now)}


def verified(key: str, nonce: str, data: bytes) -> int | None:
    """Return the time in an answer to `nonce`; None unless the holder of the key has signed it."""
    try:
        fields = json.loads(data)
        now, signature = fields["time"], fields["signature"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if type(now) is not int or not 0 <= now < 1 << 40 or not isinstance(signature, str):
        return None
    valid = hmac.compare_digest(signature.encode(errors="replace"), _signature(key, nonce, now).encode())
    return now if valid else None


def _signature(key: str, nonce: str, now: int) -> str:
    return _mac(key.encode(), f"{_PURPOSE}\n{nonce}\n{now}")


def _mac(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()

"""Signed access tokens: JWTs of one fixed form, EdDSA over Ed25519.

Only tokens of exactly this form are accepted: the header is compared byte for byte, so the presenter of a token cannot
choose an algorithm or a key. Tokens of programs do not expire, because clients never renew them; they can be revoked
(`rpc.access.auth`). Tokens of people who log in on a page expire.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from time import time
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schema import ErrorKind, MachineError

MAX_TOKEN: Final = 8192  # bytes; common limit of other servers for a header value


class TokenError(MachineError):
    """Token that was not issued by this signer or has expired. The message is safe to show."""

    kind = ErrorKind.UNAUTHENTICATED


class Claims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Claims of a token, with the names of the wire format."""

    sub: str  # the entity: id of an API key, host name or part id
    aud: tuple[str, ...]
    iss: str
    iat: int  # seconds since 1970
    jti: str
    rpc_creds_type: str
    rpc_auth_md: dict[str, str] = {}
    exp: int = 0  # seconds since 1970; 0 if the token does not expire


class Signer:
    """Issuer and verifier of tokens with one Ed25519 key, by default a new key.

    `clock` returns seconds since 1970.
    """

    def __init__(self, key: Ed25519PrivateKey | None = None, *, clock: Callable[[], float] = time) -> None:
        self._key = key or Ed25519PrivateKey.generate()
        self._public = self._key.public_key()
        self._clock = clock
        raw = self._public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.kid = _encode(hashlib.sha256(raw).digest()[:12])
        self.instance = hashlib.sha256(b"instance" + raw).hexdigest()[:16]  # identifies the holder of this key
        self._header = _encode(msgspec.json.encode({"alg": "EdDSA", "kid": self.kid, "typ": "JWT"}))
        private = self._key.private_bytes(
            serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
        )
        self._mac = hmac.digest(private, b"key fingerprint", "sha256")

    def issue(
        self,
        *,
        subject: str,
        audience: tuple[str, ...],
        issuer: str,
        credential: str,
        metadata: Mapping[str, str],
        life: int = 0,
        jti: str = "",
    ) -> str:
        """Issue a token for `subject`, valid for `life` seconds (0: without end).

        `credential` is the type of the credentials that the subject presented. `jti` is that of a token with which this
        one is to be revoked, by default a new one.
        """
        moment = self.now()
        claims = Claims(
            sub=subject,
            aud=audience,
            iss=issuer,
            iat=moment,
            jti=jti or secrets.token_urlsafe(16),
            rpc_creds_type=credential,
            rpc_auth_md=dict(metadata),
            exp=moment + life if life else 0,
        )
        signed = f"{self._header}.{_encode(msgspec.json.encode(claims))}"
        return f"{signed}.{_encode(self._key.sign(signed.encode('ascii')))}"

    def verify(self, token: str) -> Claims:
        """Return the claims of a token issued by this signer; TokenError if it is invalid or expired."""
        if len(token) > MAX_TOKEN or not token.startswith(self._header + ".") or token.count(".") != 2:
            raise TokenError("the token was not issued by this server", remedy="authenticate again")
        signed, _, signature = token.rpartition(".")
        try:
            self._public.verify(_decode(signature), signed.encode("ascii"))
            claims = _claims.decode(_decode(signed.partition(".")[2]))
        except (InvalidSignature, ValueError, msgspec.DecodeError):
            raise TokenError("the token was not issued by this server", remedy="authenticate again") from None
        if self.ended(claims.exp):
            raise TokenError("the token has expired", remedy="authenticate again")
        return claims

    def now(self) -> int:
        """Return the time of the clock."""
        return int(self._clock())

    def ended(self, exp: int) -> bool:
        """Return True if a token with this `exp` has expired; False for 0."""
        return 0 < exp <= self._clock()

    def fingerprint(self, *parts: str) -> str:
        """Return a digest of `parts`, equal for equal parts and this key. The parts cannot be recovered from it."""
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return _encode(hmac.digest(self._mac, text.encode(), "sha256")[:16])

    def __repr__(self) -> str:
        return f"Signer(kid={self.kid!r})"


_claims = msgspec.json.Decoder(Claims)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decode(text: str) -> bytes:
    """Decode canonical base64url without padding; ValueError otherwise."""
    if not text.isascii():
        raise ValueError("not base64url")
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encode(data) != text:
        raise ValueError("not canonical base64url")
    return data

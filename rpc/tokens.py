"""Signed access tokens: a JWT of one fixed form, EdDSA over Ed25519.

Only tokens of exactly the form issued here are accepted: the header is compared byte for byte, so neither an
algorithm nor a key can be chosen by whoever presents one. Tokens of programs do not expire, because clients never renew
them; they are revoked (`rpc.auth`). Those of people who sign in at a page end by themselves.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import time
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schema.errors import ErrorKind, MachineError

MAX_TOKEN: Final = 8192  # bytes; what other servers accept as one header value


class TokenError(MachineError):
    """The token is none of ours. The message is safe to show and says nothing about the key."""

    kind = ErrorKind.UNAUTHENTICATED


class Claims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a token says; names and meaning are those of the wire."""

    sub: str  # the entity: the id of an API key, a host name or a part id
    aud: tuple[str, ...]
    iss: str
    iat: int  # seconds since 1970
    jti: str
    rpc_creds_type: str
    rpc_auth_md: dict[str, str] = {}
    exp: int = 0  # seconds since 1970; 0 for a token that does not end


class Signer:
    """Issues and verifies tokens with one Ed25519 key: of this process by default, or kept in a file.

    `clock` gives seconds since 1970.
    """

    def __init__(self, key: Ed25519PrivateKey | None = None, *, clock: Callable[[], float] = time) -> None:
        self._key = key or Ed25519PrivateKey.generate()
        self._public = self._key.public_key()
        self._clock = clock
        raw = self._public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.kid = _encode(hashlib.sha256(raw).digest()[:12])
        self.instance = hashlib.sha256(b"instance" + raw).hexdigest()[:16]  # names whoever has this key
        self._header = _encode(msgspec.json.encode({"alg": "EdDSA", "kid": self.kid, "typ": "JWT"}))
        private = self._key.private_bytes(
            serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
        )
        self._mac = hmac.digest(private, b"key fingerprint", "sha256")

    @classmethod
    def from_file(cls, path: Path, *, clock: Callable[[], float] = time) -> Signer:
        """The key in `path` (PEM), made with mode 0600 if there is none; tokens then outlive the process.

        Raises MachineError if the file is readable by others or holds something else.
        """
        if path.exists():
            return cls(_load(path), clock=clock)
        try:
            return cls(_make(path), clock=clock)
        except FileExistsError:  # somebody else was faster
            return cls(_load(path), clock=clock)
        except OSError as error:
            raise MachineError(
                f"the signing key {path} cannot be made: {error.strerror}",
                kind=ErrorKind.PERMISSION,
                remedy="choose a folder this user may write to",
            ) from None

    def issue(
        self,
        *,
        subject: str,
        audience: tuple[str, ...],
        issuer: str,
        credential: str,
        metadata: Mapping[str, str],
        life: int = 0,
    ) -> str:
        """A token for `subject`, who has shown a credential of type `credential`; for `life` seconds, 0 for ever."""
        moment = int(self._clock())
        claims = Claims(
            sub=subject,
            aud=audience,
            iss=issuer,
            iat=moment,
            jti=secrets.token_urlsafe(16),
            rpc_creds_type=credential,
            rpc_auth_md=dict(metadata),
            exp=moment + life if life else 0,
        )
        signed = f"{self._header}.{_encode(msgspec.json.encode(claims))}"
        return f"{signed}.{_encode(self._key.sign(signed.encode('ascii')))}"

    def verify(self, token: str) -> Claims:
        """The claims of a token that this signer issued; raises TokenError for anything else, quickly for most."""
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

    def ended(self, exp: int) -> bool:
        """Whether a token that ends then has ended; never for 0."""
        return 0 < exp <= self._clock()

    def fingerprint(self, *parts: str) -> str:
        """A keyed digest of secrets: equal parts give equal text with this key, and nothing can be read from it."""
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return _encode(hmac.digest(self._mac, text.encode(), "sha256")[:16])

    def __repr__(self) -> str:
        return f"Signer(kid={self.kid!r})"


_claims = msgspec.json.Decoder(Claims)


def _make(path: Path) -> Ed25519PrivateKey:
    """A new key, in `path` whole or not at all, whenever the power fails; FileExistsError if there is one."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, path)
    finally:
        os.unlink(beside)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return key


def _load(path: Path) -> Ed25519PrivateKey:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(16384)
    except OSError as error:
        raise MachineError(
            f"the signing key {path} cannot be read: {error.strerror}",
            kind=ErrorKind.PERMISSION,
            remedy="let the user this program runs as read it",
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise MachineError(
            f"the signing key {path} is open to other users (mode {stat.S_IMODE(mode):04o})",
            kind=ErrorKind.PERMISSION,
            remedy="remove it, so that a new one is made; whoever read it can issue tokens",
        )
    try:
        key = serialization.load_pem_private_key(data, None)
    except Exception:  # the text may quote the file
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise MachineError(
            f"{path} holds no Ed25519 private key",
            kind=ErrorKind.INVALID,
            remedy="remove it, so that a new one is made",
        )
    return key


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decode(text: str) -> bytes:
    """Base64url without padding, one spelling only; raises ValueError."""
    if not text.isascii():
        raise ValueError("not base64url")
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encode(data) != text:
        raise ValueError("not canonical base64url")
    return data

"""A self-signed certificate for development: a proper leaf, as strict clients demand."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rpc.tls import TlsError

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
MAX_DAYS: Final = 825  # longer ones are refused by some clients, whoever signed


def self_signed(
    names: Iterable[str] = LOOPBACK, *, days: int = 397, now: datetime | None = None
) -> tuple[bytes, bytes]:
    """A P-256 certificate and its key, both PEM, for `names` (DNS names or addresses), valid from an hour before `now`.

    It is no authority (CA:FALSE): a client trusts it by having this very certificate among its authorities.
    Raises ValueError for no name, a bad name or more than MAX_DAYS.
    """
    alternatives = [_alternative(name) for name in names]
    if not alternatives:
        raise ValueError("a certificate needs at least one name")
    if not 1 <= days <= MAX_DAYS:
        raise ValueError(f"{days} days: choose 1 to {MAX_DAYS}")
    start = (now or datetime.now(UTC)) - timedelta(hours=1)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, str(alternatives[0].value)[:64])])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(encoding), private


def write_self_signed(certificate: Path, key: Path, names: Iterable[str] = LOOPBACK, *, days: int = 397) -> None:
    """Write a new pair of files, the key with mode 0600. Existing files are never overwritten; raises TlsError."""
    chain, private = self_signed(names, days=days)
    for path in (certificate, key):
        if path.exists():
            raise TlsError(f"{path} exists already", remedy="remove it first, or choose another file")
    _write(key, private, 0o600)
    try:
        _write(certificate, chain, 0o644)
    except TlsError:
        key.unlink(missing_ok=True)
        raise


def _write(path: Path, data: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except OSError as error:
        raise TlsError(
            f"{path} cannot be written: {error.strerror}", remedy="choose a folder this user may write to"
        ) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _alternative(name: str) -> x509.DNSName | x509.IPAddress:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        if not name or not name.isascii() or any(character.isspace() for character in name):
            raise ValueError(f"{name!r} is neither a DNS name nor an address") from None
        return x509.DNSName(name)

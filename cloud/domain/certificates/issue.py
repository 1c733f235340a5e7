"""X.509: roots, cross-signed roots and server certificates, without a database."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ROOT_LIFE: Final = timedelta(days=20 * 365)
LIFE: Final = timedelta(days=45)
"""Lifetime of a server certificate. A machine that was offline for less than LIFE - RENEW still has a valid one."""

RENEW: Final = timedelta(days=15)
"""Age at which a server certificate is replaced."""

EARLY: Final = timedelta(days=1)  # start of validity before creation, because clocks differ
MOST_CROSSED: Final = 3
"""Maximum number of older roots that lead to certificates of the newest one (the path length of a root)."""

_PEM: Final = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate, followed by its intermediate certificates, and its private key, in PEM."""

    certificate: str
    key: str = field(repr=False)


def new_root(name: str, now: datetime) -> CertificatePair:
    """Return a new authority with a P-256 key. Its subject is `name` and a prefix of the key id, so it is unique."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"{name} {_identifier(key.public_key()).digest.hex()[:8]}")
    builder = _builder(subject, subject, key.public_key(), now - EARLY, now + ROOT_LIFE)
    builder = _as_authority(builder, key.public_key(), path_length=MOST_CROSSED)
    return CertificatePair(_pem(builder.sign(key, hashes.SHA256())), _private(key))


def crossed(old: CertificatePair, new: CertificatePair) -> str:
    """Return the certificate of authority `new` signed by `old`, so that clients of `old` trust what `new` signs."""
    signer, certificate = _certificate(old.certificate), _certificate(new.certificate)
    end = min(signer.not_valid_after_utc, certificate.not_valid_after_utc)
    builder = _builder(certificate.subject, signer.subject, _public(certificate), certificate.not_valid_before_utc, end)
    builder = _as_authority(builder, _public(certificate), path_length=MOST_CROSSED - 1)
    return _pem(builder.add_extension(_issuer(signer), critical=False).sign(_key(old.key), hashes.SHA256()))


def new_leaf(root: CertificatePair, names: Sequence[str], now: datetime, life: timedelta = LIFE) -> CertificatePair:
    """Return a server certificate with a new P-256 key for `names` (DNS names and IP addresses), signed by `root`.

    It does not outlive the root. ValueError for an empty `names` or an invalid name.
    """
    alternatives = [alternative(name) for name in names]
    if not alternatives:
        raise ValueError("a certificate needs at least one name")
    signer = _certificate(root.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(now + life, signer.not_valid_after_utc)
    builder = (
        _builder(_name(names[0]), signer.subject, key.public_key(), now - EARLY, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(_identifier(key.public_key()), critical=False)
        .add_extension(_issuer(signer), critical=False)
    )
    return CertificatePair(_pem(builder.sign(_key(root.key), hashes.SHA256())), _private(key))


def alternative(name: str) -> x509.DNSName | x509.IPAddress:
    """Return a subject alternative name: a DNS name, which may begin with `*.`, or an IP address; else ValueError."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        if not is_dns_name(name.removeprefix("*.")):
            raise ValueError(f"{name!r} is neither a DNS name nor an address") from None
        return x509.DNSName(name)


def is_dns_name(name: str) -> bool:
    """Return whether `name` is a valid host name (RFC 1123 2.1), without wildcards."""
    labels = name.split(".")
    return len(name) <= 253 and all(
        0 < len(label) <= 63
        and label.isascii()
        and label.replace("-", "").isalnum()
        and not label.startswith("-")
        and not label.endswith("-")
        for label in labels
    )


def fingerprint(certificate: str) -> str:
    """Return the SHA-256 fingerprint of the first certificate, as browsers and openssl show it."""
    return _certificate(certificate).fingerprint(hashes.SHA256()).hex(":").upper()


def ends_of(certificate: str) -> datetime:
    """Return the expiry time of the first certificate."""
    return _certificate(certificate).not_valid_after_utc


def subject_of(certificate: str) -> str:
    """Return the common name of the first certificate."""
    return str(_certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _as_authority(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePublicKey, *, path_length: int
) -> x509.CertificateBuilder:
    return (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(_identifier(key), critical=False)
    )


def _usage(**enabled: bool) -> x509.KeyUsage:
    names: Iterable[str] = (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
        *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    )
    return x509.KeyUsage(**{name: enabled.get(name, False) for name in names})


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _identifier(key: ec.EllipticCurvePublicKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key)


def _issuer(signer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    extension = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(extension.value)


def _certificate(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificates(pem.encode())[0]


def _public(certificate: x509.Certificate) -> ec.EllipticCurvePublicKey:
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    return key


def _key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(_PEM).decode()


def _private(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()

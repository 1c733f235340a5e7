"""TLS contexts of servers and clients, and certificate renewal without closing connections.

The official clients accept these settings: TLS 1.2 or newer, ECDHE with AES-GCM or ChaCha20, ALPN `h2` and `http/1.1`.
Messages name files and certificates, never key material.
"""

from __future__ import annotations

import os
import re
import ssl
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from schema import ErrorKind, MachineError

ALPN: Final = ("h2", "http/1.1")
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"  # for TLS 1.2; all ciphers of TLS 1.3 are of this kind
_HASHED: Final = re.compile(r"[0-9a-f]{8}\.[0-9]+")  # the name of an authority in a folder of OpenSSL
MACHINE_AUTHORITY: Final = "machine-cloud machines"
"""Common name of the authorities for machines, without a suffix. Their certificates never stand for a cloud."""

_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
_PEM: Final = re.compile("-----BEGIN CERTIFICATE-----[^-]*+-----END CERTIFICATE-----")


class TlsError(MachineError):
    """Certificate, key or authority file that cannot be used; the message names the file and may have a remedy."""

    kind = ErrorKind.INVALID


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """Properties of the certificate in use."""

    names: tuple[str, ...]  # DNS names and addresses of the subject alternative name
    issuer: str
    not_before: datetime
    not_after: datetime
    fingerprint: str  # SHA-256 over DER, hexadecimal

    def expired(self, now: datetime | None = None) -> bool:
        """Return True if `now` (default: the system clock) is outside the validity period."""
        return not self.not_before <= (now or datetime.now(UTC)) <= self.not_after


class ServerTls:
    """Server TLS context from a certificate (chain) and a key in PEM files.

    New connections use `context`. `reload` replaces it; existing connections keep their context. An expired certificate
    is accepted, because a machine whose clock is wrong must stay reachable; see `facts`.
    """

    plain_locally = False

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate = Path(certificate)
        self.key = Path(key)
        self.facts, self.context = _load(self.certificate, self.key)

    def reload(self) -> bool:
        """Read both files again. Returns True if the certificate has changed.

        Raises TlsError and changes nothing if they cannot be used.
        """
        facts, context = _load(self.certificate, self.key)
        changed = facts != self.facts
        self.facts, self.context = facts, context
        return changed

    def __repr__(self) -> str:
        return (
            f"ServerTls({str(self.certificate)!r}, names={self.facts.names}, not_after={self.facts.not_after:%Y-%m-%d})"
        )


class Context(Protocol):
    """Provider of the TLS context of a port, read for each connection."""

    plain_locally: bool
    """Whether connections from this computer may use plain text."""

    @property
    def context(self) -> ssl.SSLContext | None:
        """TLS context of the next connection; None while there is no certificate, then the port uses plain text."""
        ...


class CertificateContext(Context, Protocol):
    """A Context that also shows its certificate."""

    @property
    def facts(self) -> CertificateFacts | None:
        """Properties of the certificate; None without one."""
        ...


class InMemoryTls:
    """Server TLS context from a certificate in memory, which is never written to a file. Starts without a certificate.

    `take` sets or replaces the certificate; existing connections keep their context.
    """

    def __init__(self, *, plain_locally: bool = False) -> None:
        self.plain_locally = plain_locally
        self.context: ssl.SSLContext | None = None
        self.facts: CertificateFacts | None = None

    def take(self, chain: bytes, key: bytes) -> bool:
        """Use this certificate chain and key (PEM) for new connections. Returns True if the certificate has changed.

        Raises TlsError and changes nothing if they cannot be used.
        """
        with _in_memory(chain) as certificate, _in_memory(key) as private:
            try:
                facts, context = _load(certificate, private)
            except TlsError as error:  # the names of the in-memory files mean nothing to users
                text = error.message.replace(str(certificate), "that was received").replace(
                    str(private), "that was received with it"
                )
                raise TlsError(text) from None
        changed = facts != self.facts
        if changed:
            self.facts, self.context = facts, context
        return changed


def client_context(
    *,
    authorities: Path | None = None,
    verify: bool = True,
    protocols: Sequence[str] = ALPN,
    except_subject: str = "",
) -> ssl.SSLContext:
    """Return the TLS context of a client; `protocols` are offered by ALPN.

    `authorities` is a PEM file of certificates to trust in addition to the system's, except authorities in it whose
    common name begins with `except_subject`, if that is not empty. `verify=False` accepts any
    certificate; use it only for loopback and development. Raises TlsError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _settings(context, protocols)
    if verify:
        _trust_system(context)
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if authorities is not None:
        try:
            if except_subject:
                _trust_others(context, authorities, except_subject)
            else:
                context.load_verify_locations(cafile=authorities)
        except (OSError, ssl.SSLError) as error:
            raise _unreadable(authorities, "certificate authority", error) from None
    return context


def _trust_others(context: ssl.SSLContext, file: Path, prefix: str) -> None:
    """Trust the certificates in a PEM file, without authorities whose common name begins with `prefix`."""
    every = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    every.load_verify_locations(cafile=file)
    excluded = {
        content
        for facts, content in zip(every.get_ca_certs(), every.get_ca_certs(binary_form=True), strict=True)
        if any(name == "commonName" and value.startswith(prefix) for ((name, value),) in _names_of(facts))
    }
    if not excluded:
        context.load_verify_locations(cafile=file)
        return
    blocks = _PEM.findall(file.read_text(errors="replace"))
    others = [block for block in blocks if ssl.PEM_cert_to_DER_cert(block) not in excluded]
    if others:
        context.load_verify_locations(cadata="\n".join(others))


def _names_of(facts: Mapping[str, Any]) -> Iterable[Any]:
    """Return the parts of a subject, as the ssl module gives them, that have one name."""
    return (part for part in facts.get("subject", ()) if len(part) == 1)


def _trust_system(context: ssl.SSLContext) -> None:
    """Trust the authorities of the system, or those that SSL_CERT_FILE and SSL_CERT_DIR name.

    From the file with all of them, OpenSSL loads all: 1.3 MiB and some 40 ms for each context. From the folder, it
    loads the one that signed a certificate, which it finds by its hash.
    """
    if (folder := _folder_of_authorities()) is not None:
        context.load_verify_locations(capath=folder)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)


def _folder_of_authorities() -> str | None:
    """Return the folder with the authorities of the system by their hashes; None if the file must be used.

    That is so if the numbers of authorities in them differ: a person may have edited or replaced the file.
    """
    paths = ssl.get_default_verify_paths()
    if not paths.capath or {paths.openssl_cafile_env, paths.openssl_capath_env} & os.environ.keys():
        return None
    try:
        in_folder = sum(_HASHED.fullmatch(name) is not None for name in os.listdir(paths.capath))
        in_file = Path(paths.cafile).read_bytes().count(_BEGIN) if paths.cafile else in_folder
    except OSError:
        return None
    return paths.capath if in_folder and in_file == in_folder else None


def _settings(context: ssl.SSLContext, protocols: Sequence[str] = ALPN) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols(list(protocols))
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION


def _load(certificate: Path, key: Path) -> tuple[CertificateFacts, ssl.SSLContext]:
    facts = _examine(certificate, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _settings(context)
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")  # never ask on the terminal
    except (OSError, ssl.SSLError) as error:  # changed since `_examine`, or refused by the library's policy
        raise TlsError(
            f"TLS certificate {certificate} with key {key} cannot be used: {_why(error)}",
            remedy="use a certificate chain and its key in PEM format, RSA of 2048 bits or more, or P-256",
        ) from None
    return facts, context


def _examine(certificate: Path, key: Path) -> CertificateFacts:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    chain = _read(certificate, "certificate")
    try:
        leaf = x509.load_pem_x509_certificates(chain)[0]
    except ValueError:
        raise TlsError(
            f"{certificate} contains no readable PEM certificate",
            remedy="use the file that begins with -----BEGIN CERTIFICATE-----, the server's own certificate first",
        ) from None
    pem = _read(key, "key")
    try:
        private = serialization.load_pem_private_key(pem, None)
    except TypeError:
        raise TlsError(
            f"the TLS key {key} is encrypted", remedy="store it without a pass phrase, readable by this user only"
        ) from None
    except Exception:  # ValueError, UnsupportedAlgorithm; their text may quote the file, so it is dropped
        raise TlsError(
            f"{key} contains no readable PEM private key",
            remedy="use the file that begins with -----BEGIN PRIVATE KEY-----",
        ) from None
    spki = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(*spki) != leaf.public_key().public_bytes(*spki):
        raise TlsError(
            f"the TLS key {key} does not belong to the certificate {certificate}",
            remedy="use two files that were issued together; in a chain, the server's own certificate comes first",
        )
    try:
        san = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = (*san.get_values_for_type(x509.DNSName), *map(str, san.get_values_for_type(x509.IPAddress)))
    except (x509.ExtensionNotFound, ValueError):
        names = ()
    return CertificateFacts(
        names=names,
        issuer=leaf.issuer.rfc4514_string(),
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
        fingerprint=leaf.fingerprint(hashes.SHA256()).hex(),
    )


@contextmanager
def _in_memory(data: bytes) -> Iterator[Path]:
    """Yield the path of a temporary file, because the library reads only files: in memory, or outside Linux on disk."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("tls", os.MFD_CLOEXEC)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            yield Path(f"/proc/self/fd/{descriptor}")
    else:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="tls-") as folder:  # only this user can enter it
            path = Path(folder, "file")
            path.write_bytes(data)
            yield path


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, what, error) from None


def _unreadable(path: Path, what: str, error: OSError | ssl.SSLError) -> TlsError:
    if isinstance(error, PermissionError):
        remedy = "make it readable for the user that runs this program"
    elif isinstance(error, FileNotFoundError):
        remedy = "check the path"
    else:
        remedy = "use a PEM file"
    return TlsError(f"the TLS {what} {path} cannot be read: {_why(error)}", remedy=remedy)


def _why(error: OSError | ssl.SSLError) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or error.strerror or type(error).__name__).lower().replace("_", " ")

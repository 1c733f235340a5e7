"""Certificate authorities that this machine trusts: those in `ca_file` of the credentials, and those sent by the cloud.

The cloud replaces its authorities from time to time, and `ca_file` belongs to the user and is never written here. The
push channel, a connection that is trusted already, sends the current authorities. They are stored in a separate file
and replace those in `ca_file` that belong to the cloud: an authority that the cloud has withdrawn is no longer trusted,
although `ca_file` still contains it. Other authorities in `ca_file`, such as that of a proxy, stay trusted. When the
content of `ca_file` changes, stored authorities are discarded.
"""

from __future__ import annotations

import hashlib
import re
import ssl
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from support.files import replace_file
from uplink import cached

if TYPE_CHECKING:
    from support import Worker

MAX_LENGTH: Final = 256 * 1024  # characters of a message; an authority has less than 1,000
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----[^-]++-----END CERTIFICATE-----")

_log = structlog.get_logger("rdk.networking")


class _Stored(msgspec.Struct, frozen=True, rename={"ca_file": "given", "seen": "known"}):
    """The content of the file. The names in `rename` are those of files that exist."""

    ca_file: str = ""  # SHA-256 of the `ca_file` that `cloud` replaces; "" if it replaces none
    cloud: str = ""  # PEM
    seen: tuple[str, ...] = ()  # fingerprints of all authorities that the cloud has sent for this `ca_file`, sorted
    machines: str = ""  # PEM


class CloudAuthorities:
    """The authorities that the cloud has sent; `ca_file` is that of the credentials, if any."""

    def __init__(self, ca_file: Path | None, path: Path) -> None:
        self._ca_file = ca_file
        self._path = path
        self._stored = _Stored()

    def load(self) -> None:
        """Load the stored authorities if the file exists and is valid. Blocks: do not call it in the event loop."""
        try:
            self._stored = msgspec.json.decode(self._path.read_bytes(), type=_Stored)
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("the stored authorities of the cloud cannot be read", path=str(self._path), reason=str(error))

    @property
    def machines(self) -> str:
        """Authorities (PEM) of the machines in this organization; "" if the cloud has not sent them yet."""
        return self._stored.machines

    def trusted(self) -> str:
        """Return the authorities (PEM) to use for the cloud instead of `ca_file`; "" if `ca_file` applies."""
        stored, ca_file = self._stored, self._read()
        if not stored.cloud or stored.ca_file != _digest(ca_file):
            return ""
        others = (pem for fingerprint, pem in _certificates(ca_file).items() if fingerprint not in stored.seen)
        return stored.cloud + "".join(others)

    def _read(self) -> str:
        """Read `ca_file` as it is now; return "" if it cannot be read."""
        try:
            return self._ca_file.read_bytes().decode(errors="replace") if self._ca_file is not None else ""
        except OSError:
            return ""

    async def update(self, message: Any, worker: Worker) -> None:
        """Use and store the authorities of a message of the push channel: `cloud` and `machines`, each PEM.

        Raises TypeError or ValueError for an invalid message.
        """
        if not isinstance(message, dict):
            raise TypeError("authorities must be an object")
        cloud, machines = (_checked(message.get(key, "")) for key in ("cloud", "machines"))
        ca_file = self._read()
        stored = msgspec.structs.replace(self._merged(cloud, machines, ca_file), machines=machines)
        if stored == self._stored:
            return
        new = _certificates(stored.cloud).keys() - _certificates(self._stored.cloud or ca_file).keys()
        withdrawn = _certificates(self._stored.cloud).keys() - _certificates(stored.cloud).keys()
        self._stored = stored
        if stored.cloud and (new or withdrawn):
            _log.info(
                "the cloud has changed its authorities; they replace its former ones in ca_file",
                new=sorted(new),
                withdrawn=sorted(withdrawn),
                stored_in=str(self._path),
                ca_file=f"{self._ca_file}, which is not changed",
            )
        try:
            await worker.run(partial(replace_file, self._path, msgspec.json.encode(stored)))
        except OSError as error:
            _log.error(
                "the cloud's authorities cannot be stored for the next start", path=str(self._path), error=str(error)
            )

    def _merged(self, cloud: str, machines: str, ca_file: str) -> _Stored:
        """Return what to store after the cloud sent `cloud`; nothing if `ca_file` has none of these authorities."""
        received = _certificates(cloud).keys()
        seen: tuple[str, ...]
        if self._stored.cloud and self._stored.ca_file == _digest(ca_file):
            seen = self._stored.seen
        elif received & _certificates(ca_file).keys():
            seen = ()
        else:
            return _Stored()
        if not received:
            return self._stored
        return _Stored(_digest(ca_file), cloud, tuple(sorted({*seen, *received, *_certificates(machines)})))


def authorities_path(home: Path, part: str) -> Path:
    """Return the path of the stored authorities of a part. Raises ValueError like `cached.path_of`."""
    return cached.path_of(home, part).with_name(f"cached_cloud_authorities_{part}.json")


def _checked(text: Any) -> str:
    """Return certificates as PEM without any text between them; raise ValueError if they are not valid."""
    from cryptography import x509

    if not isinstance(text, str) or len(text) > MAX_LENGTH:
        raise ValueError("authorities must be certificates in PEM format")
    if text:
        x509.load_pem_x509_certificates(text.encode())
    return "".join(_certificates(text).values())


def _certificates(text: str) -> dict[str, str]:
    """Return the certificates of a PEM text by their SHA-256 fingerprints, formatted as by `machine-cloud ca`."""
    certificates = {}
    for pem in _PEM.findall(text):
        with suppress(ValueError):  # a damaged certificate is reported where the file is used
            certificates[hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest().hex(":").upper()] = f"{pem}\n"
    return certificates


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

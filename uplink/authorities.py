"""Which authorities the cloud and its machines are trusted by: what the credentials name, and what the cloud has said.

Authorities are replaced, and `ca_file` is its owner's: nothing here writes it. The push channel tells which ones count
now, over a connection that is trusted already. They are kept in a file of the machine's own, and count in the place of
those in `ca_file` that are the cloud's: one that it has taken back is not trusted any more, although it still stands
there. Others in `ca_file`, such as that of a proxy, count as before. A `ca_file` with another content starts anew.
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

from uplink import cached

if TYPE_CHECKING:
    from support.worker import Worker

MAX_TOLD: Final = 256 * 1024  # characters; an authority has less than 1,000
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

_log = structlog.get_logger("rdk.networking")


class _Kept(msgspec.Struct, frozen=True):
    """What the file holds."""

    given: str = ""  # SHA-256 of the `ca_file` that `cloud` takes the place of; "" if it takes none
    cloud: str = ""  # PEM
    known: tuple[str, ...] = ()  # fingerprints of all that the cloud has ever told since, in order
    machines: str = ""  # PEM


class CloudAuthorities:
    """What the cloud has told of itself; `given` is the `ca_file` of the credentials, if there is one."""

    def __init__(self, given: Path | None, path: Path) -> None:
        self._given = given
        self._path = path
        self._kept = _Kept()

    def load(self) -> None:
        """Use what is on the disk, if there is something that can be used. Not in the event loop."""
        try:
            self._kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("the authorities that the cloud told are lost", path=str(self._path), reason=str(error))

    @property
    def machines(self) -> str:
        """PEM: what the machines of this one's organization are trusted by; "" while the cloud has not said."""
        return self._kept.machines

    def trusted(self) -> str:
        """PEM: what to trust the cloud by in the place of `ca_file`; "" if that is what counts."""
        kept, given = self._kept, self._read()
        if not kept.cloud or kept.given != _digest(given):
            return ""
        return kept.cloud + "".join(pem for one, pem in _certificates(given).items() if one not in kept.known)

    def _read(self) -> str:
        """`ca_file` as it is now; empty if there is none that can be read."""
        try:
            return self._given.read_bytes().decode(errors="replace") if self._given is not None else ""
        except OSError:
            return ""

    async def told(self, roots: Any, worker: Worker) -> None:
        """Take and keep what the push channel says: `cloud` and `machines`, each PEM.

        TypeError or ValueError if it is not that.
        """
        if not isinstance(roots, dict):
            raise TypeError("authorities are an object")
        cloud, machines = (_checked(roots.get(whose, "")) for whose in ("cloud", "machines"))
        given = self._read()
        kept = msgspec.structs.replace(self._taken(cloud, machines, given), machines=machines)
        if kept == self._kept:
            return
        new = _certificates(kept.cloud).keys() - _certificates(self._kept.cloud or given).keys()
        void = _certificates(self._kept.cloud).keys() - _certificates(kept.cloud).keys()
        self._kept = kept
        if kept.cloud and (new or void):
            _log.info(
                "the cloud has other authorities; they count in the place of its former ones in ca_file",
                new=sorted(new),
                void=sorted(void),
                kept_in=str(self._path),
                ca_file=f"{self._given}, which stays as it is",
            )
        try:
            await worker.run(partial(cached.replace, self._path, msgspec.json.encode(kept)))
        except OSError as error:
            _log.error("the authorities cannot be kept for a restart", path=str(self._path), error=str(error))

    def _taken(self, cloud: str, machines: str, given: str) -> _Kept:
        """What counts after `cloud` was told. A `ca_file` that names none of the cloud's goes on counting alone."""
        told = _certificates(cloud).keys()
        if self._kept.cloud and self._kept.given == _digest(given):
            before = self._kept.known
        elif told & _certificates(given).keys():
            before = ()
        else:
            return _Kept()
        if not told:
            return self._kept
        return _Kept(_digest(given), cloud, tuple(sorted({*before, *told, *_certificates(machines)})))


def path_of(home: Path, part: str) -> Path:
    """Where the authorities are kept; ValueError as `cached.path_of`."""
    return cached.path_of(home, part).with_name(f"cached_cloud_authorities_{part}.json")


def _checked(text: Any) -> str:
    """Certificates as PEM, without anything between them; ValueError for anything else."""
    from cryptography import x509

    if not isinstance(text, str) or len(text) > MAX_TOLD:
        raise ValueError("authorities are certificates (PEM)")
    if text:
        x509.load_pem_x509_certificates(text.encode())
    return "".join(_certificates(text).values())


def _certificates(text: str) -> dict[str, str]:
    """The certificates of a PEM file by their fingerprints (SHA-256), as `machine-cloud ca` writes these."""
    found = {}
    for pem in _PEM.findall(text):
        with suppress(ValueError):  # whoever is to trust it says that it is damaged
            found[hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest().hex(":").upper()] = f"{pem}\n"
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

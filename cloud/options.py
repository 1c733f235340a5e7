"""What the command line of machine-cloud decides, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cloud.blobs.s3_place import Place
from cloud.triggering.ways import NOTHING_SET, Ways
from rpc.forwarded import NO_PROXIES, Proxies

DEFAULT_ADDRESS: Final = "localhost:8090"
EXIT_OK: Final = 0
EXIT_FAILED: Final = 1  # could not start, or failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One start of machine-cloud."""

    data: Path  # folder of everything that it keeps
    postgres: str = ""  # address of its database; "" for a file in `data`
    files_at: Path | Place | None = None  # of captured files and packages; None for a folder in `data`
    address: str = DEFAULT_ADDRESS
    organization: str = "Home"  # name of the one that the first start makes
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls: bool = False  # with a certificate of its own authority
    tls_names: tuple[str, ...] = ()  # that it is to have besides
    proxies: Proxies = NO_PROXIES  # in front of it
    url: str = ""  # where clients reach it, as links name it; "" for the address that it listens on
    ways: Ways = NOTHING_SET  # how messages of triggers leave it
    ready_fd: int | None = None  # descriptor told when the port is open: MACHINE_READY_FD
    package_mib: int = 512  # that the registry takes at most of one archive
    file_mib: int = 4096  # of one captured file
    message_mib: int = 64  # of one message, which may hold a whole file
    debug: bool = False

    @property
    def database(self) -> Path:
        """The database's file, unless it is PostgreSQL."""
        return self.data / "cloud.db"

    @property
    def files(self) -> Path | Place:
        """The folder or the bucket of captured files and packages; replicas share it."""
        return self.files_at or self.data / "files"


def is_postgres(url: str) -> bool:
    """Whether `url` names a PostgreSQL database, as libpq writes it."""
    return url.startswith(("postgresql://", "postgres://"))

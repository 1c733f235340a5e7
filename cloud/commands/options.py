"""Options of the machine-cloud command line as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from cloud.blobs.s3_location import BucketLocation
from cloud.domain.machines.ice import NO_SERVERS, IceServers
from cloud.domain.triggering.ways import NOTHING_SET, DeliverySettings
from rpc.access import NO_PROXIES, Proxies
from training.weights import BACKBONE

DEFAULT_ADDRESS: Final = "localhost:8090"
EXIT_OK: Final = 0
EXIT_FAILED: Final = 1  # failed to start, or failed later


@dataclass(frozen=True, slots=True, kw_only=True)
class RayOptions:
    """A Ray cluster that runs training jobs. The repr hides the token."""

    address: str  # ray://HOST[:PORT]
    token: str = field(repr=False)
    python: str = "python3"  # the interpreter on the nodes
    resources: str = ""  # what a job needs: CPU=2,GPU=1,memory=8192
    scripts: bool = False  # run scripts of the registry, which the nodes do not isolate


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of one run of machine-cloud."""

    data: Path  # folder of all data
    postgres: str = ""  # URL of the database; "" for a file in `data`
    files_at: Path | BucketLocation | None = (
        None  # location of captured files and packages; None for a folder in `data`
    )
    address: str = DEFAULT_ADDRESS
    organization: str = "Home"  # name of the organization that the first start creates
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls: bool = False  # use a certificate of the cloud's own authority
    tls_names: tuple[str, ...] = ()  # additional names in that certificate
    proxies: Proxies = NO_PROXIES  # reverse proxies in front of the cloud
    machine_domain: str = ""  # wildcard DNS name under which machines have host names
    ice: IceServers = NO_SERVERS  # STUN and TURN servers for connections to machines
    replica_address: str = ""  # URL at which machines reach this replica; "" if it is the only one
    url: str = ""  # base of links for clients; "" for the listening address
    ways: DeliverySettings = NOTHING_SET  # delivery of trigger messages
    ready_fd: int | None = None  # descriptor notified when the port is open: MACHINE_READY_FD
    package_mib: int = 512  # largest package archive
    file_mib: int = 4096  # largest captured file
    seal_after: timedelta | None = None  # readings become segments so long after their arrival; None: never
    message_mib: int = 64  # largest message, which may hold a whole file
    training_backbone: Path = BACKBONE  # pretrained weights (ONNX) of the trainers
    training_python: str = ""  # interpreter of custom training scripts; "" refuses them
    training_jobs: int = 1  # training jobs at once; 0: none here
    training_folder: Path | None = None  # of running jobs; with a cluster, all nodes see it under this path
    ray: RayOptions | None = None  # run training jobs on a cluster instead of this computer
    training_indexes: tuple[str, ...] = ()  # package indexes for the requirements of scripts; none: not installed
    training_netrc: Path | None = None  # credentials for these indexes
    training_environments_mib: int = 20_480  # of all environments that are kept, and of one
    releases: Path | None = None  # folder with release files of this version; None for a folder in `data`
    debug: bool = False

    @property
    def database(self) -> Path:
        """Path of the SQLite database; unused with PostgreSQL."""
        return self.data / "cloud.db"

    @property
    def files(self) -> Path | BucketLocation:
        """Folder or bucket of captured files and packages, shared by replicas."""
        return self.files_at or self.data / "files"


def is_postgres(url: str) -> bool:
    """Return whether `url` is the URL of a PostgreSQL database, in libpq's form."""
    return url.startswith(("postgresql://", "postgres://"))

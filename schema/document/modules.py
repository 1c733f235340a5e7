"""Module entries: programs that provide additional models."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from schema.document.packages import PackageSource
from schema.document.section import Section
from schema.durations import Duration
from schema.errors import ConfigError
from schema.names import MAX_MODULE_NAME, check_name

DEFAULT_FIRST_RUN_TIMEOUT: Final = 3600.0
"""Default time limit in seconds of a module's first_run program, as in the reference server."""

DEFAULT_WATCHDOG: Final = 30.0
"""Default time in seconds that a module may leave a cheap call unanswered."""

SHORTEST_WATCHDOG: Final = 1.0  # seconds; with less, a busy computer would look like a hanging module

RESERVED_MODULE_NAME: Final = "parent"  # the name of the machine's own socket
_ARCHIVES: Final = (".tgz", ".tar.gz")


class ModuleStatus(Section, frozen=True, kw_only=True):
    """Status of a module in the cloud."""

    error: str = ""
    """Reason why the cloud cannot provide the module, which is then unusable."""


class ModuleLimits(Section, frozen=True, kw_only=True):
    """Resource limits of a module; 0 means no limit. The module is restarted when it exceeds memory or processes."""

    memory_mb: float = 0.0
    """Resident memory of the module and its child processes, in MiB; checked every second."""
    processes: int = 0
    """Processes and threads of the module and its child processes; checked every second."""
    open_files: int = 0
    """Open files of each process; enforced by the kernel."""
    nice: int = 0
    """Nice value from 0 to 19; higher values give way to other programs on a busy processor."""

    def __post_init__(self) -> None:
        for key in ("memory_mb", "processes", "open_files"):
            if (value := getattr(self, key)) < 0:
                raise ConfigError(key, "is negative", value=value, remedy="write a number above 0, or leave it out")
        if not 0 <= self.nice <= 19:
            raise ConfigError("nice", f"{self.nice} is not between 0 and 19", value=self.nice, remedy="write 0 to 19")


class Module(Section, frozen=True, kw_only=True):
    """Program that provides additional models."""

    name: str
    """Name, unique among modules: at most 200 letters, digits, '-' and '_'; not `parent`."""
    executable_path: str = ""
    """Path of the program or, for a local module, of an archive (.tgz, .tar.gz) with a meta.json; `~` is expanded."""
    type: Literal["local", "registry", ""] = "local"
    """`local` for a program on this computer, `registry` for a module that the cloud provides."""
    module_id: str = ""
    """`namespace:name` in the registry."""
    version: str = ""
    """Version in the registry: `1.2.3`, a prefix (`1`, `1.2`), `latest` or `latest-with-prerelease`."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """Environment variables in addition to those of the server."""
    log_level: str = ""
    """Log level that is passed to the module."""
    tcp_mode: bool = False
    """Use TCP on the loopback interface instead of a Unix socket."""
    first_run_timeout: Duration = DEFAULT_FIRST_RUN_TIMEOUT
    """Time limit of the first_run program; zero or less means the default."""
    limits: ModuleLimits = ModuleLimits()
    """Resource limits of the module."""
    watchdog: Duration = DEFAULT_WATCHDOG
    """Restart a module that leaves a cheap call unanswered for this long; 0 means never."""
    reload_on_change: bool = False
    """Restart the module when a file in its folder is saved; for modules under development."""
    status: ModuleStatus | None = None
    """Status; set by the cloud."""
    source: PackageSource | None = None
    """Archive of a module of the registry; set by the cloud."""

    def __post_init__(self) -> None:
        check_name(self.name, path="name", limit=MAX_MODULE_NAME)
        if self.name == RESERVED_MODULE_NAME:
            raise ConfigError("name", "'parent' is reserved", remedy="give the module another name")
        if self.type != "registry" and not self.executable_path:
            raise ConfigError(
                "", "'executable_path' is missing", remedy="give the path of the program that offers the models"
            )
        if self.watchdog and self.watchdog < SHORTEST_WATCHDOG:
            raise ConfigError(
                "watchdog",
                f"is shorter than {SHORTEST_WATCHDOG:g} s",
                value=self.watchdog,
                remedy='write a time such as "30s", or 0 to disable it',
            )
        if self.status is not None and self.status.error:
            raise ConfigError("status.error", f"the cloud cannot provide this module: {self.status.error}")

    @property
    def is_archive(self) -> bool:
        """True for a local archive that must be unpacked."""
        return self.type != "registry" and self.executable_path.endswith(_ARCHIVES)

    @property
    def first_run_limit(self) -> float:
        """Time limit of the first_run program in seconds."""
        return self.first_run_timeout if self.first_run_timeout > 0 else DEFAULT_FIRST_RUN_TIMEOUT

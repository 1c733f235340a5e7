"""Module entries: programs that offer further models."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from schema.durations import Duration
from schema.errors import ConfigError
from schema.names import MAX_MODULE_NAME, check_name
from schema.packages import PackageSource
from schema.section import Section

DEFAULT_FIRST_RUN_TIMEOUT: Final = 3600.0
"""Seconds that a module's first_run program may take when the entry does not say; of the reference server."""

DEFAULT_WATCHDOG: Final = 30.0
"""Seconds that a module may leave a cheap call unanswered when the entry does not say."""

SHORTEST_WATCHDOG: Final = 1.0  # seconds; less would take a busy computer for a hanging module

RESERVED_MODULE_NAME: Final = "parent"  # the machine's own socket is called so
_ARCHIVES: Final = (".tgz", ".tar.gz")


class ModuleStatus(Section, frozen=True, kw_only=True):
    """What the cloud has to say about a module."""

    error: str = ""
    """Why the cloud cannot provide it; the module is unusable and shows this."""


class ModuleLimits(Section, frozen=True, kw_only=True):
    """What a module may use; a limit of 0 is none. One that is exceeded has the module restarted."""

    memory_mb: float = 0.0
    """Resident memory of the module with everything it started, in MiB; looked at every second."""
    processes: int = 0
    """Processes and threads of the module with everything it started; looked at every second."""
    open_files: int = 0
    """Open files of each of its processes; the kernel refuses more."""
    nice: int = 0
    """How much it stands back for others when the processor is busy, 0 to 19."""

    def __post_init__(self) -> None:
        for key in ("memory_mb", "processes", "open_files"):
            if (value := getattr(self, key)) < 0:
                raise ConfigError(key, "is negative", value=value, remedy="write a number above 0, or leave it out")
        if not 0 <= self.nice <= 19:
            raise ConfigError("nice", f"{self.nice} is not between 0 and 19", value=self.nice, remedy="write 0 to 19")


class Module(Section, frozen=True, kw_only=True):
    """A program that offers models of its own."""

    name: str
    """Unique among modules; letters, digits, '-' and '_', at most 200; not `parent`."""
    executable_path: str = ""
    """The program, or for a local module an archive (.tgz, .tar.gz) with a meta.json; `~` is expanded."""
    type: Literal["local", "registry", ""] = "local"
    """`local` for a program on this computer, `registry` for one that the cloud provides."""
    module_id: str = ""
    """`namespace:name` in the registry."""
    version: str = ""
    """Version in the registry: `1.2.3`, its beginning (`1`, `1.2`), `latest` or `latest-with-prerelease`."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """Environment variables added to the machine's own."""
    log_level: str = ""
    """Level that the module is told to log at."""
    tcp_mode: bool = False
    """Speak TCP on the loopback interface instead of a Unix socket."""
    first_run_timeout: Duration = DEFAULT_FIRST_RUN_TIMEOUT
    """Limit of the first_run program; zero or less means the default."""
    limits: ModuleLimits = ModuleLimits()
    """What the module may use."""
    watchdog: Duration = DEFAULT_WATCHDOG
    """A module that leaves a cheap call unanswered for so long is restarted; 0 means never."""
    reload_on_change: bool = False
    """Restart the module when a file of its folder is saved: for modules under development."""
    status: ModuleStatus | None = None
    """Set by the cloud."""
    source: PackageSource | None = None
    """Set by the cloud: the archive of a module of the registry."""

    def __post_init__(self) -> None:
        check_name(self.name, path="name", limit=MAX_MODULE_NAME)
        if self.name == RESERVED_MODULE_NAME:
            raise ConfigError("name", "'parent' is reserved", remedy="give the module another name")
        if self.type != "registry" and not self.executable_path:
            raise ConfigError("", "'executable_path' is missing", remedy="name the program that offers the models")
        if self.watchdog and self.watchdog < SHORTEST_WATCHDOG:
            raise ConfigError(
                "watchdog",
                f"is shorter than {SHORTEST_WATCHDOG:g} s",
                value=self.watchdog,
                remedy='write a time such as "30s", or 0 for none',
            )
        if self.status is not None and self.status.error:
            raise ConfigError("status.error", f"the cloud cannot provide this module: {self.status.error}")

    @property
    def is_archive(self) -> bool:
        """True if it is a local archive that must be unpacked first."""
        return self.type != "registry" and self.executable_path.endswith(_ARCHIVES)

    @property
    def first_run_limit(self) -> float:
        """Seconds that the first_run program may take."""
        return self.first_run_timeout if self.first_run_timeout > 0 else DEFAULT_FIRST_RUN_TIMEOUT

"""Module entries: programs that offer further models."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from schema.durations import Duration
from schema.errors import ConfigError
from schema.names import MAX_MODULE_NAME, check_name
from schema.section import Section

DEFAULT_FIRST_RUN_TIMEOUT: Final = 3600.0
"""Seconds that a module's first_run program may take when the entry does not say; of the reference server."""

RESERVED_MODULE_NAME: Final = "parent"  # the machine's own socket is called so
_ARCHIVES: Final = (".tgz", ".tar.gz")


class ModuleStatus(Section, frozen=True, kw_only=True):
    """What the cloud has to say about a module."""

    error: str = ""
    """Why the cloud cannot provide it; the module is unusable and shows this."""


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
    """Version in the registry, resolved by the cloud."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """Environment variables added to the machine's own."""
    log_level: str = ""
    """Level that the module is told to log at."""
    tcp_mode: bool = False
    """Speak TCP on the loopback interface instead of a Unix socket."""
    first_run_timeout: Duration = DEFAULT_FIRST_RUN_TIMEOUT
    """Limit of the first_run program; zero or less means the default."""
    status: ModuleStatus | None = None
    """Set by the cloud."""

    def __post_init__(self) -> None:
        check_name(self.name, path="name", limit=MAX_MODULE_NAME)
        if self.name == RESERVED_MODULE_NAME:
            raise ConfigError("name", "'parent' is reserved", remedy="give the module another name")
        if self.type != "registry" and not self.executable_path:
            raise ConfigError("", "'executable_path' is missing", remedy="name the program that offers the models")
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

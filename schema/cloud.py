"""The machine's identity in the cloud, as the credentials file writes it and the cloud completes it."""

from __future__ import annotations

from schema.durations import Duration
from schema.errors import ConfigError
from schema.section import Section


class ApiKey(Section, frozen=True, kw_only=True):
    """A key and its id; one without the other is a mistake."""

    id: str = ""
    """Which key."""
    key: str = ""
    """The secret itself."""


class LocationSecret(Section, frozen=True, kw_only=True):
    """A secret that all machines of a location share."""

    id: str = ""
    """Which secret."""
    secret: str = ""
    """The secret itself."""


class Cloud(Section, frozen=True, kw_only=True):
    """Where the cloud is and how the machine proves who it is."""

    id: str = ""
    """Part id of this machine."""
    app_address: str = ""
    """URL of the cloud application."""
    ca_file: str = ""
    """Certificates (PEM) to trust there besides the system's; a path from the folder of the credentials file."""
    secret: str = ""
    """Secret of the part: opens this machine and nothing else. Not used with api_key."""
    api_key: ApiKey | None = None
    """Key with which the machine signs in instead; it needs the role of an owner at the machine."""
    refresh_interval: Duration = 10.0
    """Time between two looks for a new configuration."""
    fqdn: str = ""
    """Name of the machine on the internet; from the cloud."""
    local_fqdn: str = ""
    """Name of the machine on its local network; from the cloud."""
    managed_by: str = ""
    """Who manages the machine; from the cloud."""
    signaling_address: str = ""
    """Where connections are arranged; from the cloud unless set."""
    signaling_insecure: bool = False
    """Signal without TLS."""
    location_secret: str = ""
    """Older form of location_secrets."""
    location_secrets: tuple[LocationSecret, ...] = ()
    """Secrets that the machine accepts from clients; from the cloud."""
    location_id: str = ""
    """From the cloud."""
    primary_org_id: str = ""
    """From the cloud."""
    machine_id: str = ""
    """From the cloud."""

    def __post_init__(self) -> None:
        if self.api_key is not None and bool(self.api_key.id) != bool(self.api_key.key):
            missing = "key" if self.api_key.id else "id"
            raise ConfigError("api_key", f"{missing!r} is missing", remedy="write both id and key, or neither")
        if not self.id:
            raise ConfigError("", "'id' is missing", remedy="copy the part id from the cloud's credentials")
        if not self.secret and self.api_key is None:
            raise ConfigError("", "neither 'api_key' nor 'secret' is set", remedy="copy the credentials from the cloud")

"""Identity of the machine in the cloud, from the credentials file and completed by the cloud."""

from __future__ import annotations

from schema.document.section import Section
from schema.durations import Duration
from schema.errors import ConfigError


class ApiKey(Section, frozen=True, kw_only=True):
    """API key and its id; one without the other is an error."""

    id: str = ""
    """Id of the key."""
    key: str = ""
    """Value of the key."""


class LocationSecret(Section, frozen=True, kw_only=True):
    """Secret shared by all machines of a location."""

    id: str = ""
    """Id of the secret."""
    secret: str = ""
    """Value of the secret."""


class MainPart(Section, frozen=True, kw_only=True):
    """Main part of the machine, which may call this part."""

    id: str = ""
    """Part id."""
    secrets: tuple[str, ...] = ()
    """Digests of its secrets."""


class Cloud(Section, frozen=True, kw_only=True):
    """Address of the cloud and credentials of the machine."""

    id: str = ""
    """Part id of this machine."""
    app_address: str = ""
    """URL of the cloud application."""
    ca_file: str = ""
    """Certificates (PEM) to trust for the cloud in addition to the system's; relative to the credentials file."""
    secret: str = ""
    """Secret of the part, which gives access to this machine only. Not used with api_key."""
    api_key: ApiKey | None = None
    """Key to log in with instead of the secret; it needs the role of an owner of the machine."""
    refresh_interval: Duration = 10.0
    """Interval between checks for a new configuration."""
    fqdn: str = ""
    """Name of the machine on the internet; from the cloud."""
    local_fqdn: str = ""
    """Name of the machine on its local network; from the cloud."""
    machine_domain: str = ""
    """Domain whose host names of machines lead to the cloud; from the cloud."""
    managed_by: str = ""
    """Manager of the machine; from the cloud."""
    signaling_address: str = ""
    """Address of the signaling service for connections; from the cloud unless set."""
    signaling_insecure: bool = False
    """Use signaling without TLS."""
    location_secret: str = ""
    """Location secret; older form of location_secrets."""
    location_secrets: tuple[LocationSecret, ...] = ()
    """Secrets that the machine accepts from clients; from the cloud."""
    main_part: MainPart | None = None
    """Main part of the machine, if that is another one; from the cloud."""
    location_id: str = ""
    """Id of the location; from the cloud."""
    primary_org_id: str = ""
    """Id of the organization; from the cloud."""
    machine_id: str = ""
    """Id of the machine; from the cloud."""
    machine_name: str = ""
    """Name of the machine, as the cloud shows it; from the cloud."""

    def __post_init__(self) -> None:
        if self.api_key is not None and bool(self.api_key.id) != bool(self.api_key.key):
            missing = "key" if self.api_key.id else "id"
            raise ConfigError("api_key", f"{missing!r} is missing", remedy="write both id and key, or neither")
        if not self.id:
            raise ConfigError("", "'id' is missing", remedy="copy the part id from the cloud's credentials")
        if not self.secret and self.api_key is None:
            raise ConfigError("", "neither 'api_key' nor 'secret' is set", remedy="copy the credentials from the cloud")

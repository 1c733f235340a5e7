"""Records of the settings: what the agent does, with the defaults that are built in.

Keys of documents are those of the specification; fields that hold a time have no unit in their name and are in seconds.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from typing import Annotated, Final, Literal

import msgspec

from schema.agent.rules import (
    FEW,
    HOUR,
    MINUTE,
    Addresses,
    Cidr,
    Country,
    Environment,
    Gateway,
    Hours,
    HoursOrZero,
    Interface,
    LogFilter,
    Megabytes,
    Metric,
    Minutes,
    MinutesOrZero,
    Passphrase,
    Prefix,
    Priority,
    Ssid,
    TimeOfDay,
    Version,
    Weekdays,
    rules_of,
)
from schema.decoding.report import shown
from schema.document.section import Section
from schema.errors import ConfigError, ConfigErrors

DEFAULT_JOURNAL_MEGABYTES: Final = 512
_SSID_BYTES: Final = 32


class SettingsSection(Section, frozen=True, kw_only=True):
    """Section of the settings. A record with a value that breaks its rule cannot be created: ConfigErrors."""

    def __post_init__(self) -> None:
        problems = [
            ConfigError(key, f"{shown(value, key)} is not {rule.noun}", value=value, remedy=f"write {rule.allowed}")
            for field, key, rule in rules_of(type(self))
            if not rule.holds(value := getattr(self, field))
        ]
        if problems:
            raise ConfigErrors(problems)


class VersionControl(SettingsSection, frozen=True, kw_only=True):
    """Versions of the programs.

    `stable` is the newest release, `dev` the newest version including pre-releases; both follow new versions by
    themselves. A semantic version is installed exactly, even if it is older. A URL names an executable; `http://` is
    accepted only with the consent of the device, which the cloud cannot give.
    """

    agent: Version = "stable"
    """Version of machine-agent."""
    machine_server: Version = msgspec.field(default="stable", name="machine-server")
    """Version of machine-server. The key may also be written `viam-server`, as in the reference."""


class MaintenanceWindow(SettingsSection, frozen=True, kw_only=True):
    """Time of the week at which maintenance is allowed, in the time zone of the device."""

    days: Weekdays = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    """Days on which the window opens."""
    start: TimeOfDay
    """Time at which it opens."""
    end: TimeOfDay
    """Time at which it closes: on the next day if it is not later than `start`."""


class AdvancedSettings(SettingsSection, frozen=True, kw_only=True):
    """Switches of the agent and how it starts machine-server."""

    debug: bool = False
    """Log at level debug in the agent."""
    disable_log_deduplication: bool = False
    """Print and forward every message of the agent, even if it is repeated."""
    disable_network_configuration: bool = False
    """Leave the network alone: no hotspot, no provisioning, no additional networks."""
    disable_system_configuration: bool = False
    """Leave the operating system alone: ignore `system_configuration`."""
    disable_machine_server: bool = msgspec.field(default=False, name="disable_viam_server")
    """Stop machine-server and do not start it, for example while it is run by hand."""
    maintenance_longest_deferral: HoursOrZero = msgspec.field(default=0.0, name="maintenance_longest_deferral_hours")
    """Time after which an update or restart takes place although windows, leases, the maintenance sensor or hooks do
    not allow it; 0 waits without limit."""
    maintenance_windows: Annotated[tuple[MaintenanceWindow, ...], FEW] = ()
    """Windows outside of which updates and restarts of the agent wait; empty means at any time."""
    viam_server_env: Environment = msgspec.field(default_factory=dict)
    """Additional environment variables of machine-server. A change restarts it when maintenance allows it. The values
    are treated as secrets."""
    machine_server_start_timeout: Minutes = msgspec.field(default=10 * MINUTE, name="viam_server_start_timeout_minutes")
    """Time after which machine-server is killed and started again if it does not serve."""
    wait_for_update_check: bool = False
    """At start, wait for the network, for an update check and for the installation of a newer machine-server before
    starting it: at most one minute for the network and 15 minutes for the installation. Otherwise it starts at once.
    Periodic checks take place in both cases."""


class NetworkConfiguration(SettingsSection, frozen=True, kw_only=True):
    """Provisioning of the device, and its wifi."""

    bluetooth_trust_all: bool = False
    """Accept the pairing of every Bluetooth device for tethering, even while pairing is not unlocked."""
    device_reboot_after_offline: MinutesOrZero = msgspec.field(default=0.0, name="device_reboot_after_offline_minutes")
    """Reboot after the device has been offline for this time; 0 never reboots. It must not be shorter than
    `offline_before_starting_hotspot_minutes` and `user_idle_minutes`."""
    country: Country = ""
    """Country of the device, two capital letters as in ISO 3166: it decides which channels and powers wifi may use.
    Empty leaves the system's choice."""
    disable_bt_provisioning: bool = False
    """Do not offer provisioning over Bluetooth."""
    disable_captive_portal_redirect: bool = False
    """In the provisioning hotspot, redirect only domains that end in `.setup` to the device, not every domain."""
    disable_wifi_provisioning: bool = False
    """Do not start a provisioning hotspot."""
    fragment_id: str = ""
    """Fragment that configures a new machine; the mobile app needs it for provisioning."""
    hotspot_interface: Interface = ""
    """Interface for the hotspot and for wifi, such as `wlan0`; empty means the first wifi device."""
    hotspot_password: Passphrase = ""
    """Wifi password of the provisioning hotspot; empty means a random password of this device, never a common one."""
    hotspot_prefix: Prefix = "machine-setup"
    """Beginning of the hotspot's SSID; a hyphen and the host name in lower case follow, and the whole is cut to 32
    bytes."""
    hotspot_ssid: Ssid = ""
    """SSID of the hotspot, instead of the one formed from `hotspot_prefix`."""
    manufacturer: str = "machine"
    """Manufacturer as shown to people who provision the device."""
    model: str = "custom"
    """Model as shown to people who provision the device."""
    offline_before_starting_hotspot: Minutes = msgspec.field(
        default=2 * MINUTE, name="offline_before_starting_hotspot_minutes"
    )
    """Time offline after which provisioning starts."""
    retry_connection_timeout: Minutes = msgspec.field(default=10 * MINUTE, name="retry_connection_timeout_minutes")
    """Time after which provisioning ends, so that other connections are tried."""
    turn_on_hotspot_if_wifi_has_no_internet: bool = False
    """Count as online only if the internet can be reached, and try all configured networks in order of priority.
    Otherwise a wifi connection is enough, and only the network with the highest priority is tried."""
    user_idle: Minutes = msgspec.field(default=5 * MINUTE, name="user_idle_minutes")
    """Time without input after which a user of the portal or app is considered idle. Until then provisioning is not
    interrupted."""
    wifi_power_save: bool | None = None
    """Switch power saving of wifi connections on or off; unset leaves the system's choice, except on a Raspberry Pi,
    where it is off."""

    def ssid(self, hostname: str) -> str:
        """Return the SSID of the hotspot on a device with this host name."""
        ssid = self.hotspot_ssid or f"{self.hotspot_prefix}-{hostname.lower()}"
        return ssid.encode()[:_SSID_BYTES].decode(errors="ignore")

    @property
    def shortest_reboot(self) -> float:
        """Shortest reboot timer that leaves time for provisioning and its user, in seconds."""
        return max(self.offline_before_starting_hotspot, self.user_idle)

    def reboots_in_time(self) -> bool:
        """Return whether the device never reboots, or late enough."""
        return self.device_reboot_after_offline == 0 or self.device_reboot_after_offline >= self.shortest_reboot


class EnterpriseAccount(SettingsSection, frozen=True, kw_only=True):
    """Account of a WPA2 or WPA3 Enterprise network."""

    method: Literal["peap", "tls"]
    """EAP-PEAP with MSCHAPv2, or EAP-TLS."""
    identity: str
    """User name."""
    anonymous_identity: str = ""
    """Outer identity of EAP-PEAP, which is sent unencrypted; empty sends `identity`."""
    password: str = ""
    """Password of EAP-PEAP."""
    ca_certificate: str = ""
    """Certificates of the authorities of the server, PEM. Empty accepts those that the system trusts, and then
    `server_name` is needed."""
    server_name: str = ""
    """Name, or end of the name, that the server's certificate must have."""
    client_certificate: str = ""
    """Certificate of EAP-TLS, PEM."""
    private_key: str = ""
    """Key of EAP-TLS, PEM."""
    private_key_password: str = ""
    """Password of the key, if it is encrypted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.ca_certificate and not self.server_name:
            raise ConfigError(
                "server_name",
                "is missing, and so is ca_certificate: any computer could pose as the server",
                remedy="write the name in the server's certificate, or the certificate of its authority",
            )
        needed = ("password",) if self.method == "peap" else ("client_certificate", "private_key")
        for key in needed:
            if not getattr(self, key):
                raise ConfigError(key, f"is missing, but the method is {self.method!r}", remedy="write it")


class AdditionalNetwork(SettingsSection, frozen=True, kw_only=True):
    """Network that the device may use."""

    type: Literal["wifi", "wired"]
    """Kind of the network."""
    interface: Interface = ""
    """Interface, such as `wlan0` or `eth0`; empty means any interface of the type."""
    ssid: Ssid = ""
    """SSID, which a network of type `wifi` needs."""
    psk: Passphrase = ""
    """Wifi password; empty means an open network, or an account in `enterprise`."""
    enterprise: EnterpriseAccount | None = None
    """Account of an enterprise network, instead of `psk`."""
    hidden: bool = False
    """The access point does not announce the SSID, so that it is asked for by name."""
    priority: Priority = 0
    """Order in which networks are tried; higher comes first."""
    ipv4_address: Cidr = "auto"
    """IPv4 address with its prefix length; `auto` asks DHCP."""
    ipv4_gateway: Gateway = ""
    """IPv4 gateway."""
    ipv4_dns: Addresses = ()
    """IPv4 name servers."""
    ipv4_route_metric: Metric = 0
    """Metric of the routes; lower is preferred. 0 means 100 for wired and 600 for wifi networks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.type == "wifi" and not self.ssid:
            raise ConfigError("ssid", "is missing, but the type is 'wifi'", remedy="write the name of the network")
        if self.psk and self.enterprise is not None:
            raise ConfigError("psk", "is set, and so is 'enterprise'", remedy="keep one of them")
        if self.ipv4_gateway:
            self._check_gateway()

    def _check_gateway(self) -> None:
        if self.ipv4_address == "auto":
            raise ConfigError(
                "ipv4_gateway", "is set, but ipv4_address is auto: DHCP provides the gateway",
                remedy="write an ipv4_address, or remove the gateway",
            )  # fmt: skip
        network = IPv4Interface(self.ipv4_address).network
        if IPv4Address(self.ipv4_gateway) not in network:
            raise ConfigError(
                "ipv4_gateway", f"{self.ipv4_gateway} is not in the network {network} of ipv4_address",
                value=self.ipv4_gateway, remedy=f"write an address of {network}, or correct the prefix length",
            )  # fmt: skip

    @property
    def route_metric(self) -> int:
        """Metric of the routes, with the default of the type."""
        return self.ipv4_route_metric or {"wired": 100, "wifi": 600}[self.type]


class SystemConfiguration(SettingsSection, frozen=True, kw_only=True):
    """Journal, log forwarding and upgrades of the operating system."""

    forward_system_logs: LogFilter = ""
    """Journal entries to forward to the cloud: syslog identifiers separated by commas, `all` for every identifier, and
    a leading `-` to exclude one; empty forwards nothing. What machine-agent and machine-server log is never forwarded,
    because it reaches the cloud directly."""
    logging_journald_runtime_max_use_megabytes: Megabytes = DEFAULT_JOURNAL_MEGABYTES
    """Space of the journal in memory; 0 means 512, and -1 leaves the system's limit."""
    logging_journald_storage: Literal["persistent", "volatile", "auto", "none"] = "persistent"
    """Where the journal is stored: `Storage=` of journald.conf. Left to the system if both limits are -1."""
    logging_journald_system_max_use_megabytes: Megabytes = DEFAULT_JOURNAL_MEGABYTES
    """Space of the journal on disk; 0 means 512, and -1 leaves the system's limit."""
    os_auto_upgrade_type: Literal["", "all", "security", "disable", "managed-all", "managed-security"] = ""
    """Upgrades of packages: `all` or `security` by unattended-upgrades of the system, `managed-all` or
    `managed-security` by the agent when maintenance allows it, `disable` to switch them off, empty to leave them
    unchanged."""
    os_managed_upgrade_interval: Hours = msgspec.field(default=24 * HOUR, name="os_managed_upgrade_interval_hours")
    """Time between upgrades by the agent, for the types that begin with `managed-`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("logging_journald_runtime_max_use_megabytes", "logging_journald_system_max_use_megabytes"):
            if getattr(self, field) == 0:
                msgspec.structs.force_setattr(self, field, DEFAULT_JOURNAL_MEGABYTES)


class Settings(Section, frozen=True, kw_only=True):
    """All settings of the agent."""

    version_control: VersionControl = VersionControl()
    """Versions of the programs."""
    advanced_settings: AdvancedSettings = AdvancedSettings()
    """Switches of the agent and how it starts machine-server."""
    network_configuration: NetworkConfiguration = NetworkConfiguration()
    """Provisioning of the device, and its wifi."""
    additional_networks: dict[str, AdditionalNetwork] = msgspec.field(default_factory=dict)
    """Networks that the device may use, by label."""
    system_configuration: SystemConfiguration = SystemConfiguration()
    """Journal, log forwarding and upgrades of the operating system."""

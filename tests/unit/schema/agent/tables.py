"""Every key of the agent's settings with its default, values that are valid, and values that are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from schema.agent.reading import SECTIONS, read_settings
from schema.agent.records import EnterpriseAccount, MaintenanceWindow, Settings

MINUTES = 'write a number of minutes, or text such as "1h20m"'
HOURS = 'write a number of hours, or text such as "1h20m"'
OVER_A_MINUTE = "write at least 1 minute, at most 100 years"
ZERO_OR_A_MINUTE = "write 0 or at least 1 minute, at most 100 years"
ZERO_OR_AN_HOUR = "write 0 or at least 1 hour, at most 100 years"
OVER_AN_HOUR = "write at least 1 hour, at most 100 years"
VERSION = "write stable, dev, a semantic version such as 1.2.3, or an https:// or file:/// URL"
SSID = "write at most 32 bytes without control characters"
INTERFACE = "write at most 15 bytes without spaces, / and :"
PASSWORD = "write 8 to 63 ASCII characters or 64 hexadecimal digits"
MEGABYTES = "write a whole number from -1 to 1000000"


@dataclass(frozen=True)
class Key:
    """A key, its field, and what becomes of values."""

    section: str
    key: str
    default: Any
    valid: tuple[tuple[Any, Any], ...]  # in a document, and in the record
    invalid: tuple[tuple[Any, str], ...]  # in a document, and the remedy
    field: str = ""

    @property
    def name(self) -> str:
        return self.field or self.key

    @property
    def path(self) -> str:
        return f"agent.{self.section}.{self.key}"

    def of(self, settings: Settings) -> Any:
        return getattr(getattr(settings, self.section), self.name)

    def document(self, value: Any) -> dict[str, Any]:
        return {self.section: {self.key: value}}


def version(key: str, field: str = "") -> Key:
    valid = ("dev", "1.2.3", "1.2.3-rc.1+5f2c", "https://example.com/a", "file:///srv/a")
    invalid = ("latest", "1.2", "v1.2.3", "", "https://", "file://host/a", "ftp://example.com/a", "https://[")
    return Key(
        "version_control",
        key,
        "stable",
        tuple((text, text) for text in valid),
        (
            *((text, VERSION) for text in invalid),
            (1.2, 'write "1.2"'),
            (True, 'write "true"'),
            ({}, "write a string"),
            ("http://example.com/a", "write an https:// URL"),
        ),
        field,
    )


def switch(section: str, key: str, default: bool | None = False, field: str = "") -> Key:
    return Key(
        section,
        key,
        default,
        ((True, True), (False, False)),
        (
            ("true", "write true without quotes"),
            ("on", "write true or false"),
            (1, "write true or false"),
            ([], "write true or false"),
        ),
        field,
    )


def text(section: str, key: str, default: str, *, invalid: tuple[tuple[Any, str], ...] = (), valid: str = "x") -> Key:
    wrong_types = ((5, 'write "5"'), (False, 'write "false"'), ({}, "write a string"), (["x"], "write a string"))
    return Key(section, key, default, ((valid, valid),), (*wrong_types, *invalid))


def choice(key: str, default: str, valid: str, listed: str, misspelled: tuple[str, str]) -> Key:
    wrong_types = tuple((value, f"write one of {listed}") for value in (5, False, {}, [valid]))
    return Key(SYSTEM, key, default, ((valid, valid),), (*wrong_types, misspelled))


def secret(section: str, key: str) -> Key:
    return Key(
        section,
        key,
        "",
        (("correct horse", "correct horse"), ("f" * 64, "f" * 64), ("8 bytes!", "8 bytes!"), ("", "")),
        (
            (12345678, "write it in double quotes"),
            *((value, PASSWORD) for value in ("7 bytes", "g" * 64, "x" * 65, "pässword")),
        ),
    )


def timer(section: str, key: str, field: str, minutes: float, *, zero: bool = False) -> Key:
    allowed = ZERO_OR_A_MINUTE if zero else OVER_A_MINUTE
    return Key(
        section,
        key,
        minutes * 60.0,
        ((30, 1800.0), (30.5, 1830.0), ("1h20m", 4800.0), ("1800s", 1800.0), *(((0, 0.0), ("0", 0.0)) if zero else ())),
        (
            *((value, MINUTES) for value in ("30", "", "soon", True, [], {}, float("inf"), 10**400)),
            *((value, allowed) for value in (0.5, -1, "59s", 1e300, *(() if zero else (0,)))),
        ),
        field,
    )


def megabytes(key: str) -> Key:
    return Key(
        "system_configuration",
        key,
        512,
        ((-1, -1), (0, 512), (64, 64), (64.0, 64)),
        (
            (-2, MEGABYTES),
            (10**7, MEGABYTES),
            (10**400, "write a finite number"),
            ("64", "write 64 without quotes"),
            (1.5, "write a whole number"),
            (True, "write a whole number"),
        ),
    )


ADVANCED, NETWORK, SYSTEM = "advanced_settings", "network_configuration", "system_configuration"
NIGHT = {"start": "22:00", "end": "04:00"}
ENVIRONMENT = (
    "write names of letters, digits and _ without a leading digit, not OPTIND, and values without NUL characters, "
    "of at most 64 KiB together"
)
BAD_ENVIRONMENTS = (
    *({name: "b"} for name in ("A=", "", "my-var", "1A", "A B", "Ä", "A\n")),
    {"A": "b\0"},
    {"A": "x" * (64 << 10)},
)
INTERFACES = tuple((value, INTERFACE) for value in ("sixteen-letters-", "wlan 0", "a/b", "a:b", "..", "w\n"))

COUNTRY = "write two capital letters such as DE"
KEYS = (
    version("agent"),
    version("machine-server", "machine_server"),
    switch(ADVANCED, "debug"),
    switch(ADVANCED, "disable_log_deduplication"),
    switch(ADVANCED, "disable_network_configuration"),
    switch(ADVANCED, "disable_system_configuration"),
    switch(ADVANCED, "disable_viam_server", field="disable_machine_server"),
    Key(
        ADVANCED,
        "maintenance_longest_deferral_hours",
        0.0,
        ((72, 259200.0), ("1h30m", 5400.0), (0, 0.0)),
        ((0.5, ZERO_OR_AN_HOUR), (-1, ZERO_OR_AN_HOUR), ("3", HOURS), ([], HOURS)),
        "maintenance_longest_deferral",
    ),
    Key(
        ADVANCED,
        "maintenance_windows",
        (),
        (
            ([NIGHT], (MaintenanceWindow(start="22:00", end="04:00"),)),
            ([{**NIGHT, "days": ["sat"]}], (MaintenanceWindow(start="22:00", end="04:00", days=("sat",)),)),
            ([NIGHT] * 50, (MaintenanceWindow(start="22:00", end="04:00"),) * 50),
            ([], ()),
        ),
        (("22:00-04:00", "write a list"), ([NIGHT] * 51, "write at most 50 windows")),
    ),
    Key(
        ADVANCED,
        "viam_server_env",
        {},
        (({"A": "b", "LANG": ""}, {"A": "b", "LANG": ""}), ({}, {})),
        (
            *((variables, ENVIRONMENT) for variables in BAD_ENVIRONMENTS),
            ("A=b", "write an object"),
        ),
    ),
    timer(ADVANCED, "viam_server_start_timeout_minutes", "machine_server_start_timeout", 10),
    switch(ADVANCED, "wait_for_update_check"),
    switch(NETWORK, "bluetooth_trust_all"),
    timer(NETWORK, "device_reboot_after_offline_minutes", "device_reboot_after_offline", 0, zero=True),
    switch(NETWORK, "disable_bt_provisioning"),
    switch(NETWORK, "disable_captive_portal_redirect"),
    switch(NETWORK, "disable_wifi_provisioning"),
    text(NETWORK, "fragment_id", ""),
    text(NETWORK, "hotspot_interface", "", valid="fifteen-letters", invalid=INTERFACES),
    text(NETWORK, "country", "", valid="DE", invalid=tuple((value, COUNTRY) for value in ("de", "DEU", "D", "D1"))),
    secret(NETWORK, "hotspot_password"),
    text(
        NETWORK,
        "hotspot_prefix",
        "machine-setup",
        valid="x" * 32,
        invalid=tuple((value, f"{SSID}, not empty") for value in ("", "ä" * 17, "a\0")),
    ),
    text(NETWORK, "hotspot_ssid", "", valid="ä" * 16, invalid=(("x" * 33, SSID), ("a\n", SSID))),
    text(NETWORK, "manufacturer", "machine"),
    text(NETWORK, "model", "custom"),
    timer(NETWORK, "offline_before_starting_hotspot_minutes", "offline_before_starting_hotspot", 2),
    timer(NETWORK, "retry_connection_timeout_minutes", "retry_connection_timeout", 10),
    switch(NETWORK, "turn_on_hotspot_if_wifi_has_no_internet"),
    timer(NETWORK, "user_idle_minutes", "user_idle", 5),
    switch(NETWORK, "wifi_power_save", default=None),
    text(
        SYSTEM,
        "forward_system_logs",
        "",
        valid="all, -dbus,ssh",
        invalid=tuple(
            (value, "write identifiers separated by commas, such as all,-dbus") for value in ("a,,b", ",", "-", "a, -")
        ),
    ),
    megabytes("logging_journald_runtime_max_use_megabytes"),
    choice(
        "logging_journald_storage",
        "persistent",
        "none",
        "'auto', 'none', 'persistent', 'volatile'",
        ("volatil", "did you mean 'volatile'?"),
    ),
    megabytes("logging_journald_system_max_use_megabytes"),
    choice(
        "os_auto_upgrade_type",
        "",
        "managed-all",
        "'', 'all', 'disable', 'managed-all', 'managed-security', 'security'",
        ("secure", "did you mean 'security'?"),
    ),
    Key(
        SYSTEM,
        "os_managed_upgrade_interval_hours",
        86400.0,
        ((1, 3600.0), (1.5, 5400.0), ("90m", 5400.0)),
        ((0, OVER_AN_HOUR), ("59m", OVER_AN_HOUR), (10**9, OVER_AN_HOUR), ("1", HOURS), ([], HOURS)),
        "os_managed_upgrade_interval",
    ),
)

WIFI = {"type": "wifi", "ssid": "office"}
NETWORK_KEYS: dict[str, tuple[Any, tuple[tuple[Any, str], ...]]] = {
    "type": ("wired", (("cable", "use one of wifi, wired"), (1, "write one of 'wifi', 'wired'"))),
    "interface": ("wlan0", INTERFACES),
    "ssid": ("home", (("x" * 33, SSID), ("", "write the name of the network"), (1, 'write "1"'))),
    "psk": ("correct horse", (("7 bytes", PASSWORD), (12345678, "write it in double quotes"), ("g" * 64, PASSWORD))),
    "enterprise": (
        EnterpriseAccount(method="peap", identity="robot", password="horse", server_name="radius.example"),
        ((1, "write an object"), ("robot", "write an object")),
    ),
    "hidden": (True, (("yes", "write true or false"), (1, "write true or false"))),
    "priority": (
        -999,
        (
            (1000, "write a whole number from -999 to 999"),
            ("1", "write 1 without quotes"),
            (1.5, "write a whole number"),
        ),
    ),
    "ipv4_address": (
        "192.168.1.20/24",
        tuple(
            (value, "write auto, or an address such as 192.168.1.20/24")
            for value in ("192.168.1.20", "192.168.1.20/33", "192.168.1.256/24", "10.0.0.1/255.0.0.0", "fe80::1/64", "")
        ),
    ),
    "ipv4_gateway": (
        "192.168.1.1",  # with a fitting ipv4_address
        tuple((value, "write an address such as 192.168.1.1") for value in ("192.168.1", "fe80::1", "gateway")),
    ),
    "ipv4_dns": (
        ["192.168.1.1", "1.1.1.1"],
        ((["dns.example"], 'write addresses such as ["192.168.1.1"]'), ("1.1.1.1", "write a list")),
    ),
    "ipv4_route_metric": (
        50,
        (
            (-1, "write a whole number from 0 to 4294967295"),
            (2**32, "write a whole number from 0 to 4294967295"),
            ("50", "write 50 without quotes"),
        ),
    ),
}
"""A valid value of each key of an additional network, and values that are not valid with the remedy."""

TIME = "write hours and minutes from 00:00 to 23:59, such as 22:30"
WINDOW_KEYS: dict[str, tuple[tuple[Any, str], ...]] = {
    "days": (
        ([], "write at least one of mon, tue, wed, thu, fri, sat and sun"),
        (["monday"], "did you mean 'mon'?"),
        ("mon", "write a list"),
        ([1], "write one of 'fri', 'mon', 'sat', 'sun', 'thu', 'tue', 'wed'"),
    ),
    "start": (*((value, TIME) for value in ("24:00", "7:00", "22", "22:00:00", "")), (2200, 'write "2200"')),
    "end": (("22:60", TIME), (None, "write a string or remove the key")),
}
"""Values of each key of a maintenance window that are not valid, with the remedy."""


def others(settings: Settings, key: Key) -> dict[tuple[str, str], Any]:
    """Return all settings but that of `key`, by section and field."""
    sections = {
        (section, name): getattr(getattr(settings, section), name)
        for section in SECTIONS
        for name in getattr(settings, section).__struct_fields__
        if (section, name) != (key.section, key.name)
    }
    return {**sections, ("additional_networks", ""): settings.additional_networks}


def from_cloud(document: Any) -> tuple[Settings, list[str]]:
    """Return the settings of a document of the cloud, and the paths of the problems."""
    settings, problems = read_settings(None, document)
    return settings, [problem.path for problem in problems]

"""Decoder for the `triggers` of a configuration. An error in one trigger does not affect the others. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec

from schema import ConfigError, ConfigErrors
from schema.decoding import DecodingReport, conform, join, wrong_type
from schema.document import Section
from triggers.condition import Eval
from triggers.ssrf import MAX_URL, WebhookRefused, parse_url

DATA: Final = "part_data_ingested"
CONDITIONAL: Final = "conditional_data_ingested"
LOGS: Final = "conditional_logs_ingested"
ONLINE: Final = "part_online"
OFFLINE: Final = "part_offline"

WEBHOOK: Final = "webhook"
EMAIL: Final = "email"
PUSH: Final = "push"

OWNERS: Final = "all_machine_owners"
"""Value of an email notification to all owners of the machine."""

SECRET_PREFIX: Final = "whsec_"  # Standard Webhooks 1.0, "Signature scheme"
_SECRET_BYTES: Final = range(16, 65)  # 24 to 64 are recommended; shorter secrets are in use
_ADDRESS = re.compile(r"[^\s@<>,;:\"()\\]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?\Z", re.ASCII)
_MOST: Final = 200  # maximum number of triggers of one part
MAX_NAME: Final = 100  # characters
MAX_TARGETS: Final = 50  # maximum number of targets of one trigger


class Basic(Section, frozen=True, kw_only=True):
    """User name and password for HTTP basic authentication (RFC 7617)."""

    username: str
    """User name, without a colon."""
    password: str
    """Password, which is sent to the webhook and never shown."""

    def __post_init__(self) -> None:
        if not self.username or ":" in self.username:
            raise ConfigError("username", "is empty or contains a colon", remedy="write a name without a colon")
        if not self.password:
            raise ConfigError("password", "is empty", remedy="write the password that the receiver expects")


class Auth(Section, frozen=True, kw_only=True):
    """Authentication to a webhook."""

    basic: Basic
    """Credentials for the header `Authorization`."""


class Notification(Section, frozen=True, kw_only=True):
    """Target of a trigger."""

    type: Literal["webhook", "email", "push"]
    """HTTP request, email, or push message to a telephone (accepted, but not delivered)."""
    value: str = ""
    """URL or email address; `all_machine_owners` sends an email to every owner of the machine."""
    seconds_between_notifications: Annotated[float, msgspec.Meta(ge=0, le=366 * 86400)] = 0.0
    """Minimum time between two notifications to this target; for data triggers only."""
    auth: Auth | None = None
    """Authentication to a webhook."""
    secret: str = ""
    """Signing secret of a webhook: `whsec_` and base64. During rotation, several secrets separated by spaces."""
    application: str = ""
    """Application of a push message."""

    def __post_init__(self) -> None:
        problems = list(_target_problems(self))
        if problems:
            raise ConfigErrors(problems)


class DataIngested(Section, frozen=True, kw_only=True):
    """Data that fires a `part_data_ingested` trigger."""

    data_types: tuple[Literal["binary", "tabular", "file", "unspecified"], ...]
    """Data types, any of which fires the trigger."""

    def __post_init__(self) -> None:
        if not self.data_types:
            raise ConfigError("data_types", "is empty", remedy="use binary, tabular, file or unspecified")


class Conditions(Section, frozen=True, kw_only=True):
    """Conditions on a reading."""

    evals: tuple[Eval, ...] = ()
    """Conditions, all of which must hold."""


class Conditional(Section, frozen=True, kw_only=True):
    """Component whose data fires the trigger, and conditions on its readings."""

    data_capture_method: str
    """`<component type>:<component name>:<method>`, such as `sensor:door:Readings`."""
    conditions: Conditions | None = None
    """Conditions on a reading; without them, every upload from the component fires the trigger."""

    def __post_init__(self) -> None:
        if not all(split_method(self.data_capture_method)):
            raise ConfigError(
                "data_capture_method",
                f"{self.data_capture_method!r} is not a component type, component name and method",
                value=self.data_capture_method,
                remedy="write for example sensor:door:Readings",
            )

    @property
    def evals(self) -> tuple[Eval, ...]:
        """Conditions, all of which must hold; possibly empty."""
        return self.conditions.evals if self.conditions else ()


class TriggerEvent(Section, frozen=True, kw_only=True):
    """Event that fires a trigger."""

    type: Literal[
        "part_data_ingested", "conditional_data_ingested", "part_online", "part_offline", "conditional_logs_ingested"
    ]
    """Data ingested, data that meets conditions ingested, part online, part offline, or log entries ingested."""
    data_ingested: DataIngested | None = None
    """Data types of `part_data_ingested`."""
    conditional: Conditional | None = None
    """Component and conditions of `conditional_data_ingested`."""
    log_levels: tuple[Literal["error", "warn", "info"], ...] = ()
    """Log levels of `conditional_logs_ingested`, any of which fires the trigger."""

    def __post_init__(self) -> None:
        for kind, field, remedy in _NEEDED:
            if self.type == kind and not getattr(self, field):
                raise ConfigError(field, f"is missing: it is required by {kind}", remedy=remedy)


_NEEDED: Final = (
    (DATA, "data_ingested", 'add "data_ingested": {"data_types": ["tabular"]}'),
    (CONDITIONAL, "conditional", 'add "conditional": {"data_capture_method": "sensor:name:Readings"}'),
    (LOGS, "log_levels", 'add "log_levels": ["error"]'),
)


class Trigger(Section, frozen=True, kw_only=True):
    """Trigger, which sends notifications when an event happens."""

    name: str
    """Name, unique among the triggers of the part."""
    event: TriggerEvent
    """Event that fires the trigger."""
    notifications: tuple[Notification, ...]
    """Targets of the notifications."""
    notes: str = ""
    """Notes for people, included in emails."""
    secret: str = ""
    """Signing secret of webhooks without a secret of their own."""

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable() or len(self.name) > MAX_NAME:
            raise ConfigError(
                "name",
                f"is empty, contains control characters, or is longer than {MAX_NAME} characters",
                remedy="give the trigger a short name",
            )
        if not 0 < len(self.notifications) <= MAX_TARGETS:
            text = f"has {len(self.notifications)} targets" if self.notifications else "is empty"
            raise ConfigError("notifications", text, remedy=f"add a webhook or an email, at most {MAX_TARGETS}")
        signing_keys(self.secret)


@dataclass(frozen=True, slots=True)
class Examined:
    """Result of decoding a list of triggers."""

    triggers: tuple[Trigger, ...]
    problems: tuple[ConfigError, ...] = ()
    """Errors; triggers with errors are omitted from `triggers`."""
    warnings: tuple[ConfigError, ...] = ()
    """Unknown keys, and settings without effect."""


def examine_triggers(raw: Any, path: str = "triggers") -> Examined:
    """Decode the value of `triggers`. Never raises."""
    report = DecodingReport()
    if not isinstance(raw, Sequence) or isinstance(raw, (str, bytes)):
        wrong_type(raw, "a list", path, report)
        return Examined((), tuple(report.problems))
    if len(raw) > _MOST:
        report.problem(path, f"{len(raw)} triggers", remedy=f"use at most {_MOST}; the others are ignored")
        raw = raw[:_MOST]
    names = Counter(item["name"] for item in raw if isinstance(item, Mapping) and isinstance(item.get("name"), str))
    valid = []
    for index, item in enumerate(raw):
        trigger_path = join(path, index)
        trigger = conform(Trigger, item, trigger_path, report)
        if trigger is None:
            continue
        if names[trigger.name] > 1:
            report.problem(
                join(trigger_path, "name"),
                f"{trigger.name!r} is also the name of another trigger",
                value=trigger.name,
                remedy="rename all but one; none of them is used until then",
            )
            continue
        _warn(trigger, trigger_path, report)
        valid.append(trigger)
    return Examined(tuple(valid), tuple(report.problems), tuple(report.warnings))


def decode(raw: Sequence[Any]) -> tuple[tuple[Trigger, ...], tuple[ConfigError, ...]]:
    """Return the valid triggers of a configuration and the errors of the others. Never raises."""
    examined = examine_triggers(raw)
    return examined.triggers, examined.problems


def split_method(text: str) -> tuple[str, str, str]:
    """Split `sensor:door:Readings` into component type, component name and method; the name may contain colons.

    The type is the last segment of an API. Missing parts are empty.
    """
    kind, _, rest = text.partition(":")
    if text.count(":") > 3 and kind == "rdk":  # rdk:component:sensor:door:Readings
        _, _, rest = rest.partition(":")
        kind, _, rest = rest.partition(":")
    name, _, method = rest.rpartition(":")
    return kind, name, method


def is_address(text: str) -> bool:
    """Return True for a valid mail address without encoded words (RFC 2047), which would change the address."""
    return _ADDRESS.match(text) is not None and "=?" not in text and text.isprintable()


def signing_keys(secret: str) -> tuple[bytes, ...]:
    """Return the keys of a `secret`: none, one, or several separated by spaces. ConfigError if one is invalid."""
    return tuple(map(_signing_key, secret.split()))


def _signing_key(text: str) -> bytes:
    remedy = "write whsec_ and 24 to 64 random bytes as base64"
    if not text.startswith(SECRET_PREFIX):
        raise ConfigError("secret", f"does not begin with {SECRET_PREFIX}", remedy=remedy)
    encoded = text.removeprefix(SECRET_PREFIX)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError("secret", "is not base64", remedy=remedy) from None
    if len(key) not in _SECRET_BYTES:
        raise ConfigError("secret", f"has {len(key)} bytes", remedy=remedy)
    return key


def _target_problems(target: Notification) -> list[ConfigError]:
    problems = []
    if target.type == WEBHOOK:
        try:
            parse_url(target.value)
        except WebhookRefused as refused:
            problems.append(ConfigError("value", refused.reason, remedy=refused.remedy))
    if target.type == PUSH and len(target.value) > MAX_URL:
        problems.append(ConfigError("value", f"has {len(target.value)} characters", remedy=f"use at most {MAX_URL}"))
    if target.type == EMAIL and target.value != OWNERS and not is_address(target.value):
        problems.append(
            ConfigError(
                "value",
                f"{target.value!r} is not an email address",
                remedy=f"write for example ann@example.com, or {OWNERS}",
            )
        )
    problems += [
        ConfigError(field, f"applies only to webhooks, not to {target.type}", remedy="remove it")
        for field in ("auth", "secret")
        if getattr(target, field) and target.type != WEBHOOK
    ]
    try:
        signing_keys(target.secret)
    except ConfigError as error:
        problems.append(error)
    return problems


def _warn(trigger: Trigger, path: str, report: DecodingReport) -> None:
    timed = trigger.event.type in {DATA, CONDITIONAL}
    for index, target in enumerate(trigger.notifications):
        target_path = join(path, "notifications", index)
        if target.type == PUSH:
            report.warn(target_path, "push messages are not delivered", remedy="add a webhook or an email too")
        if target.seconds_between_notifications and not timed:
            report.warn(
                join(target_path, "seconds_between_notifications"),
                f"{trigger.event.type} does not use it",
                remedy="remove it: every change is notified, log entries once an hour",
            )
    for kind, field, _ in _NEEDED:
        if trigger.event.type != kind and getattr(trigger.event, field):
            report.warn(join(path, "event", field), f"{trigger.event.type} does not use it", remedy="remove it")

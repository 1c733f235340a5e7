"""Rules of alerts: what they look at, when they alert, and how people are notified. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from cloud.domain.alerts.life import Missing, Timing
from cloud.domain.alerts.quieting.hours import QuietHours
from cloud.domain.alerts.wording import check_template
from cloud.values.limits import ALERT_SCOPE, ALERT_TARGETS
from cloud.values.names import checked_name
from schema import ErrorKind, MachineError

LONGEST: Final = 7 * 86_400  # seconds of any duration of a rule
MAX_GROUP: Final = 3600  # seconds
MIN_REPEAT: Final = 60  # seconds
MAX_PATH: Final = 200  # characters


class Kind(Enum):
    """What a rule looks at."""

    OFFLINE = "offline"  # the machine does not call
    HEALTH = "health"  # resources do not work, or the configuration is rejected
    UPDATE = "update"  # an update was rolled back or rejected
    TRAINING = "training"  # a training job has failed
    READING = "reading"  # captured readings


class RuleScope(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The machines of a rule: those with one of the ids, locations (with those below) or tags; all if it is empty."""

    machines: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.machines or self.locations or self.tags)


class Condition(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A comparison with readings.

    `path` is a field below `readings`, with dots; `*` stands for any characters of a name, and of several numbers the
    one that is nearest to an alert counts. `recovery` is the threshold at which the alert resolves, if it is another.
    """

    path: str
    comparison: Literal["gt", "gte", "lt", "lte", "eq", "neq"]
    threshold: float | str | bool
    recovery: float | None = None
    component: str = ""  # any if empty
    component_type: str = ""
    method: str = ""


class AlertTarget(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A webhook or an email address. `secret` signs webhooks; it is stored, and never returned."""

    type: Literal["webhook", "email"]
    value: str
    secret: str = ""


class Rule(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A rule. Durations are seconds. `targets` are notified; if there are none, those of the organization are."""

    name: str
    kind: Kind
    enabled: bool = True
    scope: RuleScope = RuleScope()
    condition: Condition | None = None
    for_seconds: int = 0
    recover_seconds: int = 0
    repeat_seconds: int = 0
    group_seconds: int = 30
    no_data: Missing = Missing.KEEP
    no_data_seconds: int = 3600
    quiet: QuietHours | None = None
    message: str = ""
    targets: tuple[AlertTarget, ...] = ()

    @property
    def timing(self) -> Timing:
        """The durations that the life of an alert needs."""
        reading = self.kind is Kind.READING
        return Timing(
            hold=timedelta(seconds=self.for_seconds),
            calm=timedelta(seconds=self.recover_seconds),
            repeat=timedelta(seconds=self.repeat_seconds),
            missing=self.no_data if reading else Missing.KEEP,
            patience=timedelta(seconds=self.no_data_seconds) if reading else timedelta(0),
            once=self.kind is Kind.TRAINING,
        )

    def means(self, other: Rule) -> bool:
        """Return whether an alert of the other rule is one of this: only notifications and the name may differ."""
        return _meaning(self) == _meaning(other)

    def check(self) -> None:
        """Raise INVALID, with the field, unless the rule can be used."""
        checked_name(self.name, "a rule")
        for field in ("for_seconds", "recover_seconds", "repeat_seconds", "no_data_seconds"):
            _check_range(field, getattr(self, field), 0, LONGEST)
        _check_range("group_seconds", self.group_seconds, 0, MAX_GROUP)
        if self.repeat_seconds:
            _check_range("repeat_seconds", self.repeat_seconds, MIN_REPEAT, LONGEST)
        if self.kind is Kind.READING:
            _check_range("no_data_seconds", self.no_data_seconds, MIN_REPEAT, LONGEST)
        for ids in (self.scope.machines, self.scope.locations, self.scope.tags):
            ALERT_SCOPE.check(len(ids), "the rule")
            if any(not text or len(text) > MAX_PATH for text in ids):
                raise _invalid("scope", "a name or id is empty or too long", "leave it out")
        ALERT_TARGETS.check(len(self.targets), "the rule")
        if len({(target.type, target.value) for target in self.targets}) < len(self.targets):
            raise _invalid("targets", "two of them are equal", "remove one of them")
        if self.kind is Kind.TRAINING and self.scope:
            raise _invalid("scope", "training jobs belong to no machine", "leave it out")
        if (self.kind is Kind.READING) is (self.condition is None):
            raise _invalid("condition", "rules of kind reading have one, others have none", "add or remove it")
        if self.condition is not None:
            _check_condition(self.condition)
        if self.quiet is not None:
            self.quiet.check()
        check_template(self.message)


def decoded(value: Mapping[str, Any]) -> Rule:
    """Return the checked rule in JSON-like data; INVALID."""
    try:
        rule = msgspec.convert(value, Rule, strict=True)
    except msgspec.ValidationError as error:
        raise MachineError(f"the rule is not valid: {error}", kind=ErrorKind.INVALID) from None
    rule.check()
    return rule


def encoded(rule: Rule) -> dict[str, Any]:
    """Return a rule as JSON-like data without secrets."""
    plain = msgspec.structs.replace(
        rule, targets=tuple(msgspec.structs.replace(target, secret="") for target in rule.targets)
    )
    data: dict[str, Any] = msgspec.to_builtins(plain)
    return data


def _meaning(rule: Rule) -> tuple[object, ...]:
    return (rule.kind, rule.scope, rule.condition, rule.for_seconds, rule.no_data, rule.no_data_seconds)


def _check_condition(condition: Condition) -> None:
    segments = condition.path.split(".")
    if not all(segments) or len(condition.path) > MAX_PATH or len(segments) > 32:
        raise _invalid("condition.path", repr(condition.path[:40]), "write the names of the field, with dots between")
    if any(len(text) > MAX_PATH for text in (condition.component, condition.component_type, condition.method)):
        raise _invalid("condition", "a name is too long", "correct it")
    ordered = condition.comparison not in ("eq", "neq")
    number = isinstance(condition.threshold, int | float) and not isinstance(condition.threshold, bool)
    if ordered and not number:
        raise _invalid("condition.threshold", "gt, gte, lt and lte compare numbers", "write a number, or use eq")
    if isinstance(condition.threshold, str) and len(condition.threshold) > MAX_PATH:
        raise _invalid("condition.threshold", "the text is too long", "compare with a shorter one")
    numbers = [value for value in (condition.threshold, condition.recovery) if isinstance(value, float)]
    if not all(map(math.isfinite, numbers)):
        raise _invalid("condition", "a number is not finite", "write a number")
    if condition.recovery is None:
        return
    if not ordered or not isinstance(condition.threshold, int | float):
        raise _invalid("condition.recovery", "it is for gt, gte, lt and lte", "leave it out")
    above = condition.comparison in ("gt", "gte")
    if condition.recovery > condition.threshold if above else condition.recovery < condition.threshold:
        raise _invalid(
            "condition.recovery",
            f"{condition.recovery:g} is on the side that alerts",
            f"use a value {'below' if above else 'above'} {condition.threshold:g}",
        )


def _check_range(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise _invalid(field, f"{value} is out of range", f"use {least} to {most} seconds")


def _invalid(field: str, problem: str, remedy: str) -> MachineError:
    return MachineError(f"{field}: {problem}", kind=ErrorKind.INVALID, remedy=remedy)

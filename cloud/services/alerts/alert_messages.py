"""Messages of machine.cloud.v1.AlertService."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct


class Alert(Struct, frozen=True):
    """An alert that fires or was acknowledged. `source` is the component and its method, a program, or a model."""

    id: str
    rule_id: str
    rule: str
    kind: str
    state: str  # firing or acknowledged
    part_id: str
    machine: str
    location: str
    source: str
    since: datetime | None
    fired: datetime | None
    seen: datetime | None
    value: Any
    threshold: str
    path: str
    acknowledged_by: str
    silenced_until: datetime | None
    machine_id: str
    covered: bool  # silenced with its rule or its machine


class AlertSilence(Struct, frozen=True):
    """A silence of all alerts of a rule or a machine, with its name; the id of the other is empty."""

    rule_id: str
    machine_id: str
    name: str
    until: datetime
    silenced_by: str


class AlertEvent(Struct, frozen=True):
    """Something that happened to an alert. `detail` is who did it, or why it happened."""

    number: int
    alert_id: str
    rule_id: str
    rule: str
    part_id: str
    machine: str
    location: str
    source: str
    kind: str
    happened: datetime
    value: Any
    detail: str


class AlertEvents(Struct, frozen=True):
    """A page of events, newest first. `next` is `before` of the next page; 0 after the last one."""

    events: Sequence[AlertEvent]
    next: int


class AlertRule(Struct, frozen=True):
    """A rule. `rule` has the fields of a rule without secrets; URLs of webhooks only for owners."""

    id: str
    name: str
    builtin: bool
    changed: bool
    open: int  # alerts that fire or were acknowledged
    reaches: bool  # it has targets, its own or those of the organization
    rule: Mapping[str, Any]


class AlertTarget(Struct, frozen=True):
    """A target of the organization, with the state and the error of the newest message to it, if there is one."""

    type: str
    value: str
    signed: bool
    state: str
    error: str
    tried: datetime | None


class AlertAnswer(Struct, frozen=True):
    """What the receiver of a test message has answered. `state` is waiting while there is no answer."""

    type: str
    value: str
    state: str
    status: int
    error: str


class PreviewSource(Struct, frozen=True):
    """What a rule would have caused at one source. `fired` are the times, at most 100."""

    machine: str
    source: str
    fired: Sequence[datetime]
    count: int
    open: bool  # it would fire at the end
    least: float
    greatest: float


class ExplainAlertRuleResponse(Struct, frozen=True):
    """What a rule would have caused. `notes` say what could not be considered, such as missing data."""

    start: datetime
    end: datetime
    count: int
    sources: Sequence[PreviewSource]
    notes: Sequence[str]

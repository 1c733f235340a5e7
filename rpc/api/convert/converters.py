"""Exceptions from the rules of conversion: free-form values, times, durations, resource names, and single fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from rpc.api.convert import values
from rpc.api.convert.fit import FitError
from schema import API, ConfigError, ResourceName

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DURATION: Final = timedelta(seconds=315_576_000_000)  # google/protobuf/duration.proto

_NAME_PARTS: Final = frozenset({"namespace", "type", "subtype", "name"})
RESOURCE_NAME: Final = "viam.common.v1.ResourceName"


def _fill_list(message: Any, value: Any) -> None:
    if not isinstance(value, (list, tuple)):
        raise FitError("a list", value)
    values.fill_list(message, value)


def fill_timestamp(message: Any, value: Any) -> None:
    """Fill a Timestamp from an aware datetime or RFC 3339 text; microseconds are kept."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise FitError("a time such as 2026-01-31T12:00:00Z", value) from None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise FitError("a datetime with a time zone", value)
    since = value - _EPOCH
    message.seconds = since.days * 86400 + since.seconds
    message.nanos = since.microseconds * 1000


def read_timestamp(message: Any) -> datetime:
    """Convert a Timestamp to an aware datetime, truncated to microseconds."""
    try:
        return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
    except OverflowError:
        raise FitError("a time between the years 1 and 9999", message.seconds) from None


def fill_duration(message: Any, value: Any) -> None:
    """Fill a Duration from a timedelta or seconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            value = timedelta(seconds=value)
        except (OverflowError, ValueError):
            raise FitError("a number of seconds that a Duration can hold", value) from None
    if not isinstance(value, timedelta):
        raise FitError("a timedelta or seconds", value)
    if abs(value) > _MAX_DURATION:
        raise FitError("at most 10,000 years", value)
    whole = value // timedelta(microseconds=1)
    sign = -1 if whole < 0 else 1  # both parts carry the sign
    seconds, micros = divmod(abs(whole), 1_000_000)
    message.seconds = sign * seconds
    message.nanos = sign * micros * 1000


def read_duration(message: Any) -> timedelta:
    """Convert a Duration to a timedelta, truncated to microseconds."""
    nanos = message.nanos
    try:
        return timedelta(seconds=message.seconds, microseconds=nanos // 1000 if nanos >= 0 else -(-nanos // 1000))
    except OverflowError:
        raise FitError("a duration that a timedelta can hold", message.seconds) from None


def fill_resource_name(message: Any, value: Any) -> None:
    """Fill a ResourceName from a name, its text, an API (without a name), or an object with the four parts."""
    if isinstance(value, str):
        try:
            value = ResourceName.parse(value) if "/" in value else API.parse(value)
        except ConfigError as error:
            raise FitError("a resource name such as rdk:component:motor/left", error.value) from None
    name = ""
    if isinstance(value, ResourceName):
        name, value = value.short, value.api
    if isinstance(value, API):
        message.namespace, message.type, message.subtype = value.namespace, value.type, value.subtype
        message.name = name
    elif isinstance(value, Mapping) and value.keys() <= _NAME_PARTS:
        for key, item in value.items():
            if not isinstance(item, str):
                raise FitError(f"text as {key}", item)
            setattr(message, key, item)
    elif hasattr(value, "subtype"):
        for key in _NAME_PARTS:
            setattr(message, key, getattr(value, key, ""))
    else:
        raise FitError("a resource name", value)


def read_resource_name(message: Any) -> ResourceName:
    """Convert a ResourceName message to a resource name."""
    try:
        return ResourceName.parse(read_resource_text(message))
    except ConfigError as error:
        raise FitError("a resource name such as rdk:component:motor/left", error.value) from None


def read_api(message: Any) -> API:
    """Convert a ResourceName message to its API, without the name."""
    try:
        return API.parse(f"{message.namespace}:{message.type}:{message.subtype}")
    except ConfigError as error:
        raise FitError("an API such as rdk:component:motor", error.value) from None


def read_resource_text(message: Any) -> str:
    """Convert a ResourceName message to text; without a name, only the API."""
    api = f"{message.namespace}:{message.type}:{message.subtype}"
    return f"{api}/{message.name}" if message.name else api


@dataclass(frozen=True, slots=True)
class Converter:
    """Conversion between the wire and Python that differs from the rules.

    A converter of a message is called with that message. A converter of a field is called with the message that has the
    field, and applies to all values of a repeated field or map.
    """

    words: str  # type in help texts
    schema: Mapping[str, Any]  # JSON Schema of a value
    fill: Callable[[Any, Any], None] | None = None  # sets the message or field; None: by the rules
    read: Callable[[Any], Any] | None = None  # reads it without a more specific type hint; None: by the rules
    classes: Mapping[type, Callable[[Any], Any]] = field(default_factory=dict)  # readers by class of a type hint
    argument: Literal["text", "number", "json"] = "json"  # how it is written on a command line

    @property
    def is_free(self) -> bool:
        """True if the Python values are mappings, lists and plain values of any structure."""
        return self.fill is not None and not self.classes


CONVERTERS: Final[Mapping[str, Converter]] = {
    "google.protobuf.Any": Converter("mapping", {"type": "object"}),
    "google.protobuf.Struct": Converter("mapping", {"type": "object"}, values.fill_struct, values.read_struct),
    "google.protobuf.Value": Converter("any value", {}, values.fill_value, values.read_value),
    "google.protobuf.ListValue": Converter("list", {"type": "array"}, _fill_list, values.read_list),
    "google.protobuf.Timestamp": Converter(
        "time",
        {"type": "string", "format": "date-time"},
        fill_timestamp,
        read_timestamp,
        {datetime: read_timestamp},
        "text",
    ),
    "google.protobuf.Duration": Converter(
        "seconds", {"type": "number"}, fill_duration, read_duration, {timedelta: read_duration}, "number"
    ),
    RESOURCE_NAME: Converter(
        "resource name",
        {"type": "string"},
        fill_resource_name,
        read_resource_text,
        {ResourceName: read_resource_name, API: read_api, str: read_resource_text},
        "text",
    ),
}
"""Converters by full name of a message, or of one field of a request or reply, such as
`viam.component.motor.v1.SetPowerRequest.power_pct`."""


def converter_of(field: FieldDescriptor) -> Converter | None:
    """Return the converter of a single value of the field, None if the rules apply."""
    row = CONVERTERS.get(field.full_name)
    if row is None and field.message_type is not None:
        row = CONVERTERS.get(field.message_type.full_name)
    return row

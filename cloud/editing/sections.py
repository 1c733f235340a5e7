"""JSON schemas of the document sections without types: resources, frames, capture, fragments, triggers."""

from __future__ import annotations

from typing import Any, Final

LEVELS: Final = ("debug", "info", "warn", "error")
RESOURCE_NAME: Final = "resource"
"""Value of `x-names` for values that are names of resources."""


def _text(meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": meaning, **more}


def _object(meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "description": meaning, **more}


_FRAME: Final = _object(
    "Position of the component.",
    properties={
        "parent": _text("Parent frame: `world` or a component.", **{"x-names": "frame"}),
        "translation": _object(
            "Position of its origin in the parent frame, in mm.",
            properties={axis: {"type": "number", "description": "mm", "default": 0} for axis in "xyz"},
        ),
        "orientation": _object(
            "Orientation in the parent frame.",
            properties={
                "type": _text(
                    "Representation of the orientation.",
                    enum=["ov_degrees", "ov_radians", "euler_angles", "axis_angles", "quaternion"],
                ),
                "value": _object("Values of that representation."),
            },
        ),
        "geometry": _object(
            "Shape of the component.",
            properties={
                "type": _text("Kind of shape.", enum=["box", "sphere", "capsule", "point", "mesh"]),
                **{axis: {"type": "number", "description": "mm"} for axis in ("x", "y", "z", "r", "l")},
                "label": _text("Name of the shape."),
            },
        ),
    },
)
_CAPTURE: Final = _object(
    "Data capture of one method.",
    properties={
        "method": _text("Method, such as Readings, GetImages or Position."),
        "capture_frequency_hz": {"type": "number", "description": "Captures per second.", "default": 1, "minimum": 0},
        "additional_params": _object("Arguments of the method."),
        "disabled": {"type": "boolean", "description": "Do not capture.", "default": False},
        "capture_queue_size": {"type": "integer", "description": "Maximum number of readings in memory."},
        "capture_buffer_size": {"type": "integer", "description": "Bytes in one write."},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags of the captured data."},
    },
    required=["method"],
)
_SERVICE_CONFIG: Final = _object(
    "Settings of a service for this resource.",
    properties={
        "type": _text("The service.", enum=["data_manager"]),
        "attributes": _object(
            "Attributes that the service defines.",
            properties={"capture_methods": {"type": "array", "items": _CAPTURE, "description": "Methods to capture."}},
        ),
    },
    required=["type"],
)


def _resource(kind: str) -> dict[str, Any]:
    return _object(
        f"A {kind}.",
        properties={
            "name": _text("Name, unique in the machine: letters, digits, `-` and `_`."),
            "api": _text(f"API, such as rdk:{kind}:generic.", **{"x-names": "api"}),
            "model": _text(
                "Model: a built-in one, or namespace:family:name of a module's model.", **{"x-names": "model"}
            ),
            "attributes": _object("Settings that the model defines."),
            "depends_on": {
                "type": "array",
                "items": _text("A resource that must be ready first.", **{"x-names": RESOURCE_NAME}),
                "description": "Resources that must be ready first, in addition to those in its attributes.",
            },
            "frame": _FRAME,
            "log_configuration": _object(
                "Log level of the resource.",
                properties={"level": _text("Lowest level that is logged.", enum=list(LEVELS))},
            ),
            "service_configs": {
                "type": "array",
                "items": _SERVICE_CONFIG,
                "description": "Settings of services for this resource, such as data capture.",
            },
        },
        required=["name", "api", "model"] if kind == "component" else ["api"],
    )


_FRAGMENT: Final = _object(
    "Use of a fragment.",
    properties={
        "id": _text("Id of the fragment.", **{"x-names": "fragment"}),
        "version": _text("Revision or tag; by default the newest revision."),
        "prefix": _text("Prefix for the names of all resources of the fragment."),
        "variables": _object("Values for its variables."),
        "disabled": {"type": "boolean", "description": "Ignore the fragment.", "default": False},
    },
    required=["id"],
)
_MODS: Final = _object(
    "Changes to the content of one fragment.",
    properties={
        "fragment_id": _text("Id of the fragment.", **{"x-names": "fragment"}),
        "mods": {
            "type": "array",
            "description": "Changes, applied in this order.",
            "items": _object(
                "A change.",
                properties={
                    "$set": _object("Values by path, such as components.arm.attributes.speed."),
                    "$unset": _object("Paths of values to remove."),
                },
            ),
        },
    },
    required=["fragment_id", "mods"],
)
_NOTIFICATION: Final = _object(
    "A recipient of notifications.",
    properties={
        "type": _text("Kind of message.", enum=["webhook", "email", "push"]),
        "value": _text("Recipient: https://..., ada@example.com or all_machine_owners."),
        "seconds_between_notifications": {"type": "integer", "description": "Minimum interval.", "minimum": 0},
        "secret": _text("Secret that signs webhook messages (Standard Webhooks), whsec_..."),
    },
    required=["type", "value"],
)
_TRIGGER: Final = _object(
    "Sends notifications when an event occurs.",
    properties={
        "name": _text("Name, unique among triggers."),
        "event": _object(
            "Event that fires the trigger.",
            properties={
                "type": _text(
                    "The kind of event.",
                    enum=[
                        "part_online",
                        "part_offline",
                        "part_data_ingested",
                        "conditional_data_ingested",
                        "conditional_logs_ingested",
                    ],
                ),
                "data_ingested": _object("For part_data_ingested: types of data."),
                "conditional": _object("For conditional_data_ingested: the method, and conditions on its readings."),
                "log_levels": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["error", "warn", "info"]},
                    "description": "For conditional_logs_ingested: levels of log entries.",
                },
            },
            required=["type"],
        ),
        "notifications": {"type": "array", "items": _NOTIFICATION, "description": "Recipients of notifications."},
        "notes": _text("Notes for readers of the configuration."),
    },
    required=["name", "event", "notifications"],
)

SECTIONS: Final[dict[str, Any]] = {
    "components": {"type": "array", "items": _resource("component"), "description": "Hardware-facing resources."},
    "services": {"type": "array", "items": _resource("service"), "description": "Software-facing resources."},
    "fragments": {"type": "array", "items": _FRAGMENT, "description": "Configurations shared by machines."},
    "fragment_mods": {"type": "array", "items": _MODS, "description": "Changes to the content of fragments."},
    "triggers": {"type": "array", "items": _TRIGGER, "description": "Notifications about events."},
}
NAMED: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("ScheduledJob", "resource"): {"x-names": RESOURCE_NAME},
    ("LogRule", "level"): {"enum": list(LEVELS)},
    ("LogConfiguration", "level"): {"enum": list(LEVELS)},
    ("Module", "log_level"): {"enum": ["", *LEVELS]},
}
"""Additions to the schemas of other types, by type name and key: they only help completion and reject nothing."""

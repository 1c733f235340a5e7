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
    "Where the component stands.",
    properties={
        "parent": _text("The frame that it stands in: `world` or a component.", **{"x-names": "frame"}),
        "translation": _object(
            "Where its origin is in the parent, in mm.",
            properties={axis: {"type": "number", "description": "mm", "default": 0} for axis in "xyz"},
        ),
        "orientation": _object(
            "How it is turned.",
            properties={
                "type": _text(
                    "The form in which the turn is written.",
                    enum=["ov_degrees", "ov_radians", "euler_angles", "axis_angles", "quaternion"],
                ),
                "value": _object("The numbers of that form."),
            },
        ),
        "geometry": _object(
            "Its shape.",
            properties={
                "type": _text("Kind of shape.", enum=["box", "sphere", "capsule", "point", "mesh"]),
                **{axis: {"type": "number", "description": "mm"} for axis in ("x", "y", "z", "r", "l")},
                "label": _text("Its name."),
            },
        ),
    },
)
_CAPTURE: Final = _object(
    "What is captured of this method.",
    properties={
        "method": _text("Such as Readings, GetImages or Position."),
        "capture_frequency_hz": {"type": "number", "description": "Times a second.", "default": 1, "minimum": 0},
        "additional_params": _object("Arguments of the method."),
        "disabled": {"type": "boolean", "description": "Capture nothing for now.", "default": False},
        "capture_queue_size": {"type": "integer", "description": "Readings that may wait for the disk."},
        "capture_buffer_size": {"type": "integer", "description": "Bytes of one write."},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags of what is captured."},
    },
    required=["method"],
)
_SERVICE_CONFIG: Final = _object(
    "What a service should do with this resource.",
    properties={
        "type": _text("The service.", enum=["data_manager"]),
        "attributes": _object(
            "The service's own words.",
            properties={"capture_methods": {"type": "array", "items": _CAPTURE, "description": "What to capture."}},
        ),
    },
    required=["type"],
)


def _resource(kind: str) -> dict[str, Any]:
    return _object(
        f"One {kind}.",
        properties={
            "name": _text("Unique in the machine; letters, digits, `-` and `_`."),
            "api": _text(f"What it is, such as rdk:{kind}:generic.", **{"x-names": "api"}),
            "model": _text("What drives it: a word, or namespace:family:name of a module's.", **{"x-names": "model"}),
            "attributes": _object("What the model wants to know."),
            "depends_on": {
                "type": "array",
                "items": _text("A resource that must be there first.", **{"x-names": RESOURCE_NAME}),
                "description": "Resources that must be there first, besides those that its attributes name.",
            },
            "frame": _FRAME,
            "log_configuration": _object(
                "The level of its log.", properties={"level": _text("From which level on.", enum=list(LEVELS))}
            ),
            "service_configs": {
                "type": "array",
                "items": _SERVICE_CONFIG,
                "description": "What services should do with it, such as capture its readings.",
            },
        },
        required=["name", "api", "model"] if kind == "component" else ["api"],
    )


_FRAGMENT: Final = _object(
    "One fragment.",
    properties={
        "id": _text("Its id.", **{"x-names": "fragment"}),
        "version": _text("A revision or a tag; without one the newest."),
        "prefix": _text("Stands before the name of everything that it brings."),
        "variables": _object("Values for its variables."),
        "disabled": {"type": "boolean", "description": "Leave it out for now.", "default": False},
    },
    required=["id"],
)
_MODS: Final = _object(
    "Changes to what one fragment brings.",
    properties={
        "fragment_id": _text("The fragment.", **{"x-names": "fragment"}),
        "mods": {
            "type": "array",
            "description": "In this order.",
            "items": _object(
                "One change.",
                properties={
                    "$set": _object("Values by path, such as components.arm.attributes.speed."),
                    "$unset": _object("Paths of what is taken out."),
                },
            ),
        },
    },
    required=["fragment_id", "mods"],
)
_NOTIFICATION: Final = _object(
    "Whom to tell.",
    properties={
        "type": _text("How.", enum=["webhook", "email", "push"]),
        "value": _text("An address: https://..., somebody@example.com or all_machine_owners."),
        "seconds_between_notifications": {"type": "integer", "description": "No more often than this.", "minimum": 0},
        "secret": _text("Signs what is sent to a webhook (Standard Webhooks), whsec_..."),
    },
    required=["type", "value"],
)
_TRIGGER: Final = _object(
    "Tells somebody when something happens.",
    properties={
        "name": _text("Unique among triggers."),
        "event": _object(
            "What must happen.",
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
                "data_ingested": _object("For part_data_ingested: which data."),
                "conditional": _object("For conditional_data_ingested: which readings of what."),
                "log_levels": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["error", "warn", "info"]},
                    "description": "For conditional_logs_ingested: of which levels.",
                },
            },
            required=["type"],
        ),
        "notifications": {"type": "array", "items": _NOTIFICATION, "description": "Who is told, and how."},
        "notes": _text("For people."),
    },
    required=["name", "event", "notifications"],
)

SECTIONS: Final[dict[str, Any]] = {
    "components": {"type": "array", "items": _resource("component"), "description": "Hardware-facing resources."},
    "services": {"type": "array", "items": _resource("service"), "description": "Software-facing resources."},
    "fragments": {"type": "array", "items": _FRAGMENT, "description": "Configurations that many machines share."},
    "fragment_mods": {"type": "array", "items": _MODS, "description": "Changes to what fragments bring."},
    "triggers": {"type": "array", "items": _TRIGGER, "description": "Who is told when something happens."},
}
NAMED: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("Job", "resource"): {"x-names": RESOURCE_NAME},
    ("LogRule", "level"): {"enum": list(LEVELS)},
    ("LogConfiguration", "level"): {"enum": list(LEVELS)},
    ("Module", "log_level"): {"enum": ["", *LEVELS]},
}
"""Additions to the schemas of other types, by type name and key: they only help completion and reject nothing."""

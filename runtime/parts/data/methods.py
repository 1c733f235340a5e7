"""Methods that can be captured, by their names in configurations. Pure.

The names are those of the published documentation (data capture, supported resources).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from schema import API, ConfigError
from schema.decoding import did_you_mean

COMMAND_KEY: Final = "docommand_input"
BETWEEN_KEY: Final = "confidence_between"
DATASETS_KEY: Final = "dataset_ids"
MAX_DATASETS: Final = 10  # datasets to which one method may add its readings


@dataclass(frozen=True, slots=True)
class Parameter:
    """An additional parameter. `argument` is the argument of the call, or empty if it selects among the readings."""

    argument: str
    required: bool = False
    valid: Callable[[Any], bool] = lambda value: True
    remedy: str = ""  # what to write instead of a value that is not valid


@dataclass(frozen=True, slots=True)
class Method:
    """A method that can be captured."""

    python: str
    shape: str = "tabular"  # how a result becomes readings: a name in runtime.parts.data.files.encode
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    extra: bool = True  # whether it has the argument `extra`
    fixed: Mapping[str, Any] = field(default_factory=dict)  # fixed arguments of every call

    @property
    def binary(self) -> bool:
        """Whether each reading is a separate file."""
        return self.shape not in ("tabular", "readings", "command")

    def arguments(self, values: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return the arguments of the call. Raises ConfigError at `path` for missing and unknown parameters."""
        for name in values:
            if name not in self.parameters:
                raise ConfigError(
                    f"{path}.{name}",
                    "this method has no such parameter",
                    value=values[name],
                    remedy=did_you_mean(name, self.parameters)
                    or (
                        f"use one of: {', '.join(self.parameters)}"
                        if self.parameters
                        else "it has no parameters: remove it"
                    ),
                )
        for name, parameter in self.parameters.items():
            if parameter.required and not values.get(name):
                raise ConfigError(path, f"{name!r} is missing", remedy=f"add {name!r}")
            if name in values and not parameter.valid(values[name]):
                raise ConfigError(
                    f"{path}.{name}", "the value is not valid", value=values[name], remedy=parameter.remedy
                )
        arguments = {self.parameters[name].argument: value for name, value in values.items()}
        return {**self.fixed, **{argument: value for argument, value in arguments.items() if argument}}


def _is_interval(value: Any) -> bool:
    """Return whether a value is a pair of ascending confidences."""
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(isinstance(bound, (int, float)) and not isinstance(bound, bool) for bound in value)
        and 0 <= value[0] <= value[1] <= 1
    )


def _are_ids(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and 0 < len(value) <= MAX_DATASETS
        and all(isinstance(item, str) and item for item in value)
    )


_VISION_RESULTS: Final = {"return_image": True, "return_detections": True, "return_classifications": True}
_MIME: Final = {"mime_type": Parameter("mime_type")}
_SOURCES: Final = {"filter_source_names": Parameter("filter_source_names")}
_MOVEMENT: Final = {
    "Position": "get_position",
    "LinearVelocity": "get_linear_velocity",
    "AngularVelocity": "get_angular_velocity",
    "CompassHeading": "get_compass_heading",
    "LinearAcceleration": "get_linear_acceleration",
    "Orientation": "get_orientation",
}
_READINGS: Final = Method("get_readings", "readings")

_METHODS: Final[Mapping[str, Mapping[str, Method]]] = {
    "rdk:component:arm": {
        "EndPosition": Method("get_end_position"),
        "JointPositions": Method("get_joint_positions"),
    },
    "rdk:component:audio_in": {
        "GetAudio": Method(
            "get_audio",
            "audio",
            {"duration_seconds": Parameter("duration_seconds"), "codec": Parameter("codec")},
        ),
    },
    "rdk:component:board": {
        "Analogs": Method(
            "read_analog_reader", parameters={"reader_name": Parameter("analog_reader_name", required=True)}
        ),
        "Gpios": Method("get_gpio", parameters={"pin_name": Parameter("pin", required=True)}),
    },
    "rdk:component:camera": {
        "GetImages": Method("get_images", "images", _SOURCES),
        "ReadImage": Method("get_images", "image", {"mime_type": Parameter("")}),
        "NextPointCloud": Method("get_point_cloud", "point_cloud", _MIME),
    },
    "rdk:component:encoder": {"TicksCount": Method("get_position")},
    "rdk:component:gantry": {"Position": Method("get_position"), "Lengths": Method("get_lengths")},
    "rdk:component:motor": {"Position": Method("get_position"), "IsPowered": Method("is_powered")},
    "rdk:component:movement_sensor": {
        **{name: Method(python) for name, python in _MOVEMENT.items()},
        "Readings": _READINGS,
    },
    "rdk:component:power_sensor": {
        "Voltage": Method("get_voltage"),
        "Current": Method("get_current"),
        "Power": Method("get_power"),
        "Readings": _READINGS,
    },
    "rdk:component:sensor": {"Readings": _READINGS},
    "rdk:component:servo": {"Position": Method("get_position")},
    "rdk:service:vision": {
        "CaptureAllFromCamera": Method(
            "capture_all_from_camera",
            "vision",
            {
                "camera_name": Parameter("camera_name"),
                BETWEEN_KEY: Parameter(
                    "", valid=_is_interval, remedy="write two numbers from 0 to 1, the lower one first: [0.3, 0.7]"
                ),
                DATASETS_KEY: Parameter(
                    "", valid=_are_ids, remedy=f"write a list of ids of datasets, at most {MAX_DATASETS}"
                ),
            },
            fixed=_VISION_RESULTS,
        ),
    },
}

_COMMAND: Final = Method("do_command", "command", {COMMAND_KEY: Parameter("command", required=True)}, extra=False)


def methods_of(api: API) -> Mapping[str, Method]:
    """Return the methods of an API that can be captured, by their names in configurations."""
    return {**_METHODS.get(str(api), {}), "DoCommand": _COMMAND}


def find(api: API, name: str, path: str) -> Method:
    """Return the method called `name`. Raises ConfigError at `path`, with similar names or all names."""
    methods = methods_of(api)
    if name in methods:
        return methods[name]
    raise ConfigError(
        path,
        f"{api} has no capture method {name!r}",
        value=name,
        remedy=did_you_mean(name, methods) or f"use one of: {', '.join(methods)}",
    )

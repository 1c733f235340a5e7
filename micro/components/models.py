"""The table of models. A module is imported when a configuration needs it, so that the others cost no memory."""

from micro.engine.attributes import Unfit, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from micro.engine.resource import Resource

MODELS = (
    ("base", "wheeled", "wheeled", "WheeledBase"),
    ("base", "fake", "fakes", "FakeWheels"),
    ("board", "esp32", "pins", "MicroBoard"),
    ("board", "rp2", "pins", "MicroBoard"),
    ("board", "fake", "pins", "MicroBoard"),
    ("button", "gpio", "controls", "PinButton"),
    ("button", "fake", "fakes", "CountingButton"),
    ("encoder", "incremental", "encoders", "QuadratureEncoder"),
    ("encoder", "single", "encoders", "SingleTrack"),
    ("encoder", "fake", "fakes", "TurningEncoder"),
    ("generic", "fake", "fakes", "Echo"),
    ("motor", "gpio", "motors", "PinMotor"),
    ("motor", "fake", "motors", "ModelMotor"),
    ("movement_sensor", "mpu6050", "chips", "InertialChip"),
    ("movement_sensor", "gyro-mpu6050", "chips", "InertialChip"),
    ("movement_sensor", "accel-adxl345", "chips", "InertialChip"),
    ("movement_sensor", "fake", "fakes", "StillSensor"),
    ("power_sensor", "ina219", "chips", "PowerChip"),
    ("power_sensor", "ina226", "chips", "PowerChip"),
    ("power_sensor", "fake", "fakes", "SteadySupply"),
    ("sensor", "lm75", "chips", "ReadingChip"),
    ("sensor", "sht3x", "chips", "ReadingChip"),
    ("sensor", "tmp102", "chips", "ReadingChip"),
    ("sensor", "gpio_input", "controls", "InputPins"),
    ("sensor", "host", "controls", "Computer"),
    ("sensor", "fake", "fakes", "ConstantSensor"),
    ("servo", "gpio", "motors", "PinServo"),
    ("servo", "fake", "motors", "ModelServo"),
    ("switch", "gpio", "controls", "PinSwitch"),
    ("switch", "fake", "fakes", "DialSwitch"),
)
"""API, model, module below this package, class."""

BUILTIN = "rdk:builtin:"


def load(api: str, model: "Any") -> "type[Resource]":
    """Return the class of a model; Unfit if this server does not have it."""
    if not isinstance(model, str) or not model:
        raise Unfit("model is missing")
    name = model[len(BUILTIN) :] if model.startswith(BUILTIN) else model
    for kind, title, module, cls in MODELS:
        if kind == api and title == name:
            drivers = __import__("micro.components." + module, None, None, [cls])
            loaded: type[Resource] = getattr(drivers, cls)
            return loaded
    names = [title for kind, title, _, _ in MODELS if kind == api]
    if not names:
        raise Unfit(f"this server has no models of {api}")
    raise Unfit(f"this server has no model {shown(name)} of {api}: it has {', '.join(names)}")


def model_of(config: "dict[str, Any]") -> str:
    """Return the short name of the model of a component."""
    model = str(config.get("model"))
    return model[len(BUILTIN) :] if model.startswith(BUILTIN) else model

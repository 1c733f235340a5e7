"""Fields of the form, and what is recognized from the descriptions of attributes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from cloud.editing.catalogue import EditingContext, catalogue
from cloud.editing.findings import findings
from cloud.editing.form_rules import API_SUMMARIES, MODEL_SUMMARIES, unit_of
from cloud.editing.forms import FormField, FormSchema, encoded_schema, form_schema

SCHEMA = form_schema(catalogue())
REFERENCES = """
arm/wrapper_arm arm-name: arm
base/fake left.[]: motor
base/fake right.[]: motor
base/sensor-controlled movement_sensor.[]: movement_sensor
base/sensor-controlled base: base
base/wheeled left.[]: motor
base/wheeled right.[]: motor
button/gpio board: board
camera/transform source: camera
encoder/fake board: board
encoder/incremental board: board
encoder/single board: board
input_controller/gpio board: board
input_controller/mux sources.[]: input_controller
motor/fake board: board
motor/fake encoder: encoder
motor/gpio board: board
motor/gpio encoder: encoder
motor/gpiostepper board: board
movement_sensor/fake base: base
movement_sensor/merged position.[]: movement_sensor
movement_sensor/merged orientation.[]: movement_sensor
movement_sensor/merged compass_heading.[]: movement_sensor
movement_sensor/merged linear_velocity.[]: movement_sensor
movement_sensor/merged angular_velocity.[]: movement_sensor
movement_sensor/merged linear_acceleration.[]: movement_sensor
movement_sensor/wheeled-odometry base: base
movement_sensor/wheeled-odometry left_motors.[]: motor
movement_sensor/wheeled-odometry right_motors.[]: motor
sensor/gpio_input board: board
servo/gpio board: board
switch/gpio board: board
switch/relay board: board
base_remote_control/builtin base: base
base_remote_control/builtin input_controller: input_controller
data_manager/builtin capture_control_sensor.name: sensor
data_manager/builtin selective_syncer_name: sensor
navigation/builtin base: base
navigation/builtin movement_sensor: movement_sensor
sensors/builtin sensors.[]: *
sensors/fake sensors.[]: *
vision/color_detector camera_name: camera
vision/mlmodel camera_name: camera
vision/mlmodel mlmodel_name: mlmodel
"""
PINS = """
board/fake analogs.[].pin: pin
board/fake digital_interrupts.[].pin: pin
board/linux digital_interrupts.[].pin: pin
board/linux safe_high.[]: pin
board/linux outputs.[]: pin
button/gpio pin: pin
encoder/fake pins.a: pin
encoder/fake pins.b: pin
encoder/fake pins.i: pin
encoder/incremental pins.a: interrupt
encoder/incremental pins.b: interrupt
encoder/single pins.i: interrupt
motor/fake pins.a: pin
motor/fake pins.b: pin
motor/fake pins.dir: pin
motor/fake pins.pwm: pin
motor/fake pins.en_high: pin
motor/fake pins.en_low: pin
motor/gpio pins.a: pin
motor/gpio pins.b: pin
motor/gpio pins.dir: pin
motor/gpio pins.pwm: pin
motor/gpio pins.en_high: pin
motor/gpio pins.en_low: pin
motor/gpiostepper pins.step: pin
motor/gpiostepper pins.dir: pin
motor/gpiostepper pins.en_high: pin
motor/gpiostepper pins.en_low: pin
sensor/gpio_input pins.[]: pin
servo/gpio pin: pin
switch/gpio pins.[]: pin
switch/relay pin: pin
"""


def inner(field: FormField, path: str) -> Iterator[tuple[str, FormField]]:
    yield path, field
    for key, each in field.fields.items():
        yield from inner(each, f"{path}.{key}")
    if field.of is not None:
        yield from inner(field.of, f"{path}.[]")


def attributes() -> Iterator[tuple[str, FormField]]:
    for model in SCHEMA.models:
        for key, field in model.fields.items():
            for path, each in inner(field, key):
                yield f"{model.api.rpartition(':')[2]}/{model.word} {path}", each


def attribute(path: str) -> FormField:
    return dict(attributes())[path]


def test_names_of_resources_and_pins_are_recognized() -> None:
    names = [f"{path}: {field.names.rpartition(':')[2]}" for path, field in attributes() if field.names]
    assert names == REFERENCES.split("\n")[1:-1]
    assert [f"{path}: {field.pins}" for path, field in attributes() if field.pins] == PINS.split("\n")[1:-1]


def test_every_model_and_api_has_a_line_for_people() -> None:
    assert set(API_SUMMARIES) == {api.rpartition(":")[2] for api in SCHEMA.apis}
    assert all(len(model.about) > 3 for model in SCHEMA.models)
    assert {(model.api.rpartition(":")[2], model.word) for model in SCHEMA.models} >= set(MODEL_SUMMARIES)


def test_fields_have_kind_unit_range_and_default() -> None:
    max_rpm = attribute("motor/gpio max_rpm")
    assert (max_rpm.kind, max_rpm.unit, max_rpm.range, max_rpm.default) == ("number", "rpm", "at least 0", 0.0)
    power = attribute("motor/gpio max_power_pct")
    assert (power.range, power.default, power.required) == ("more than 0, at most 1", 1.0, False)
    assert attribute("motor/gpio board").required
    assert attribute("motor/gpio dir_flip").kind == "switch"
    assert attribute("switch/gpio encoding").choices == ("binary", "one_hot")
    assert attribute("sensor/gpio_input pins").kind == "map"
    assert attribute("base/wheeled left").of == FormField(kind="text", names="rdk:component:motor")
    assert attribute("generic/mqtt password").secret
    assert attribute("sensor/fake readings").kind == "json"
    assert dict(inner(SCHEMA.sections["network"], ""))[".sessions.heartbeat_window"].kind == "duration"


@pytest.mark.parametrize(
    ("key", "about", "unit"),
    [
        ("width_mm", "", "mm"),
        ("pwm_freq", "PWM frequency on the pins (Hz); 0: the board's", "Hz"),
        ("max_rpm", "", "rpm"),
        ("ticks", "ticks", ""),
        ("s", "", ""),
    ],
)
def test_units_come_from_keys_and_descriptions(key: str, about: str, unit: str) -> None:
    assert unit_of(key, about) == unit


def test_the_schema_is_small_and_complete() -> None:
    encoded = encoded_schema()
    assert len(encoded.data) < 120_000
    assert msgspec.json.decode(encoded.data, type=FormSchema) == SCHEMA
    assert set(SCHEMA.sections) == set(catalogue().document["properties"])
    assert {(model.api, model.word) for model in SCHEMA.models} == {
        (model.api, model.word) for model in catalogue().models
    }


MOTOR = '{"components": [{"name": "left", "api": "rdk:component:motor", "model": "gpio", "attributes": %s}]}'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            MOTOR % '{"board": "pi", "pins": {"pwm": "1"}, "max_rpm": "fast"}',
            'left › max_rpm must be a number, not "fast"',
        ),
        (MOTOR % '{"board": "pi", "pins": {"pwm": 1}}', 'left › pins › pwm must be a string, not 1: write "1"'),
        (
            MOTOR % '{"board": "pi", "pins": {"pwm": "1"}, "pwm_freq": -2}',
            "left › pwm_freq: -2 is out of range: write a whole number from 0",
        ),
        ('{"debug": 1}', "debug must be true or false, not 1"),
        (
            '{"remotes": [{"name": "a", "address": "b", "secret": 5}]}',
            "a › secret must be a string, not a whole number: write it in double quotes",
        ),
    ],
)
def test_findings_name_the_field(text: str, sentence: str) -> None:
    assert sentence in [finding.sentence for finding in findings(text, EditingContext())]

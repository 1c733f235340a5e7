"""The wing of models: what its folders contain, what is models, and what checking a document loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from hal.control import DEFAULT_GAINS
from hal.ports.i2c import FIRST_ADDRESS, LAST_ADDRESS
from hal.sim import DEFAULT_FREQUENCY
from models.chips.common import attributes as chips
from models.fake.board.attributes import FakeBoardConfig
from models.gpio.motor.attributes import ControlParameters
from models.table import ATTRIBUTES, BUILTIN
from tools.gen_model_table import builtin_models

ROOT: Final = Path(__file__).resolve().parents[3]
CHECK: Final = """
import sys
from models import ATTRIBUTES, builtin_models, check_document
import cloud.editing.findings, cloud.services.configurations.configurations
from schema import API, Model
for api, model in ATTRIBUTES:
    builtin_models().config(API.parse(api), Model.parse(model))
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_attributes_of_all_models_load_no_hardware_and_no_driver() -> None:
    done = subprocess.run([sys.executable, "-c", CHECK], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"models", "schema", "cloud"} <= loaded
    assert not loaded & {"hal", "engine", "runtime", "agent", "rig", "gpiod", "smbus2", "serial"}


def test_the_table_contains_every_model_once() -> None:
    models = [(item.api, item.name) for item in builtin_models()]
    assert len(models) == len(set(models))
    assert set(models) == set(BUILTIN) == set(ATTRIBUTES)


@pytest.mark.parametrize("path", sorted((ROOT / "models").rglob("model.py")), ids=lambda path: path.parent.name)
def test_a_folder_with_a_model_offers_one(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    assert any(value.startswith(f"{module}:") for value in BUILTIN.values()), "decorate its class with engine.model"


def test_defaults_without_hardware_are_those_of_the_hardware() -> None:
    gains = ControlParameters()
    assert (gains.p, gains.i, gains.d) == (DEFAULT_GAINS.p, DEFAULT_GAINS.i, DEFAULT_GAINS.d)
    assert (chips.FIRST_ADDRESS, chips.LAST_ADDRESS) == (FIRST_ADDRESS, LAST_ADDRESS)
    assert FakeBoardConfig().default_pwm_frequency_hz == DEFAULT_FREQUENCY

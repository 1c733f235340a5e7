"""Names of RPCs, enum values and services."""

import pytest

from rpc.api import messages
from rpc.api.convert.names import enum_prefix, python_name
from rpc.api.convert.scalars import short_names
from rpc.api.methods import methods_of
from rpc.api.table import SERVICES, STREAMED

PUBLISHED = [entry for entry in SERVICES.values() if entry.module]  # tests may have registered others


@pytest.mark.parametrize(
    ("rpc", "expected"),
    [
        ("GetReadings", "get_readings"),
        ("SetRPM", "set_rpm"),
        ("SetGPIO", "set_gpio"),
        ("PWM", "pwm"),
        ("PWMFrequency", "pwm_frequency"),
        ("SetPWMFrequency", "set_pwm_frequency"),
        ("Get3DModels", "get_3d_models"),
        ("GetDetections3D", "get_detections_3d"),
        ("ListUUIDs", "list_uuids"),
        ("ResourceRPCSubtypes", "resource_rpc_subtypes"),
        ("TransformPCD", "transform_pcd"),
        ("DoCommand", "do_command"),
        ("IsMoving", "is_moving"),
    ],
)
def test_python_name(rpc, expected):
    assert python_name(rpc) == expected


def test_names_are_unique_and_keep_every_letter():
    for entry in PUBLISHED:
        rpcs = [method.name for method in messages.service(entry.service, entry.module).methods]
        names = [python_name(rpc) for rpc in rpcs]
        assert len(set(names)) == len(names)
        assert [name.replace("_", "") for name in names] == [rpc.lower() for rpc in rpcs]


def test_every_service_of_the_table_exists():
    for entry in PUBLISHED:
        assert messages.service(entry.service, entry.module).full_name == entry.service


def test_every_streamed_rpc_exists_with_its_fields():
    values = {method.path[1:].replace("/", "."): method for e in PUBLISHED for method in methods_of(e).values()}
    for full, streamed in STREAMED.items():
        method = values[full]
        assert method.client_streaming
        assert not streamed.item or streamed.item in method.request.fields_by_name
        assert not streamed.init or streamed.init in method.request.fields_by_name


@pytest.mark.parametrize(
    ("names", "prefix"),
    [
        (["POWER_MODE_NORMAL", "POWER_MODE_OFFLINE_DEEP", "POWER_MODE_UNSPECIFIED"], "POWER_MODE_"),
        (["A_ONE"], ""),
        (["ONE", "TWO"], ""),
        (["MIME_A", "MIME_AB"], "MIME_"),
    ],
)
def test_enum_prefix(names, prefix):
    assert enum_prefix(names) == prefix


def test_short_names_of_a_published_enum():
    board = messages.load("component.board.v1.board_pb2")
    assert short_names(board.PowerMode.DESCRIPTOR) == {"UNSPECIFIED": 0, "NORMAL": 1, "OFFLINE_DEEP": 2}

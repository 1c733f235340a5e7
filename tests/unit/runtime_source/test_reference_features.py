"""Every feature of the reference's configuration is accepted, or refused with a reason that names what is missing.

Each document covers one feature and was written for this test, following the reference's format.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from command.check import check

BOARD = {"name": "pi", "api": "rdk:component:board", "model": "fake"}
PINS = {"a": "1", "b": "2", "pwm": "3"}
HERE = sys.executable  # a program that exists


def resource(kind: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"name": kind, "api": f"rdk:component:{kind}", "model": model, "attributes": attributes}


def components(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"components": [BOARD, *entries]}


def sensor(**keys: Any) -> dict[str, Any]:
    return {"components": [{"name": "s", "api": "rdk:component:sensor", "model": "fake", **keys}]}


def service(kind: str, model: str = "builtin", **keys: Any) -> dict[str, Any]:
    return {"services": [{"name": "it", "api": f"rdk:service:{kind}", "model": model, **keys}]}


def module(**keys: Any) -> dict[str, Any]:
    return {"modules": [{"name": "m", "executable_path": HERE, **keys}]}


def remote(**keys: Any) -> dict[str, Any]:
    return {"remotes": [{"name": "far", "address": "far.local:8080", **keys}]}


def job(**keys: Any) -> dict[str, Any]:
    return {**sensor(), "jobs": [{"name": "j", "schedule": "10s", "resource": "s", "method": "GetReadings", **keys}]}


KEYS = {"id-1": "key-1", "keys": ["id-1"]}
WHEEL = {**resource("motor", "fake"), "name": "w"}
BASE = resource("base", "wheeled", left=["w"], right=["v"], width_mm=100, wheel_circumference_mm=300)
WHEELS = (WHEEL, {**WHEEL, "name": "v"}, BASE)
ENCODER = resource("encoder", "incremental", board="pi", pins={"a": "5", "b": "6"})
CONTROL = {"p": 1, "i": 0.1, "d": 0}
BOX = {"type": "box", "x": 1, "y": 2, "z": 3, "label": "l", "translation": {"x": 1, "Y": 2, "z": 0}}

ACCEPTED: dict[str, Any] = {
    "empty": {},
    # ---- entries
    "api as text": sensor(),
    "api as an object": sensor(api={"namespace": "rdk", "type": "component", "subtype": "sensor"}),
    "namespace and type": {"components": [{"name": "s", "namespace": "rdk", "type": "sensor", "model": "fake"}]},
    "type alone": {"components": [{"name": "s", "type": "sensor", "model": "fake"}]},
    "model as a triplet": sensor(model="rdk:builtin:fake"),
    "model as an object": sensor(model={"namespace": "rdk", "model_family": "builtin", "name": "fake"}),
    "depends_on by simple and full name": {
        "components": [
            *sensor()["components"],
            {"name": "t", "type": "sensor", "model": "fake", "depends_on": ["s", "rdk:component:board/pi"]},
            BOARD,
        ]
    },
    "log_configuration": sensor(log_configuration={"level": "Debug"}),
    "service_configs": sensor(
        service_configs=[
            {"type": "data_manager", "attributes": {"capture_methods": [{"method": "Readings"}]}},
        ]
    ),
    "service without name": {"services": [{"api": "rdk:service:shell", "model": "builtin"}]},
    "service without name and model": {"services": [{"type": "data_manager"}]},
    # ---- frames
    "frame": sensor(frame={"parent": "world", "translation": {"X": 1, "Y": 2, "Z": 3}}),
    "frame with id": sensor(frame={"parent": "world", "id": "other"}),
    **{
        f"orientation {kind}": sensor(frame={"parent": "world", "orientation": {"type": kind, "value": value}})
        for kind, value in {
            "ov_degrees": {"x": 0, "y": 0, "z": 1, "th": 90},
            "ov_radians": {"x": 0, "y": 0, "z": 1, "th": 1.5},
            "euler_angles": {"roll": 0, "pitch": 0, "yaw": 1},
            "axis_angles": {"x": 0, "y": 0, "z": 1, "th": 1},
            "quaternion": {"W": 1, "X": 0, "Y": 0, "Z": 0},
        }.items()
    },
    **{
        f"geometry {item['type']}": sensor(frame={"parent": "world", "geometry": item})
        for item in (BOX, {"type": "sphere", "r": 5}, {"type": "capsule", "r": 5, "l": 20}, {"type": "point"})
    },
    # ---- other sections
    "module with everything": module(
        type="local", env={"A": "b"}, log_level="debug", tcp_mode=True, first_run_timeout="5m", version="1.0.0"
    ),
    "module of the registry": {
        "modules": [{"name": "m", "type": "registry", "module_id": "acme:arm", "version": "1.2.3"}]
    },
    "remote with everything": remote(
        prefix="f",
        insecure=True,
        auth={"entity": "id", "credentials": {"type": "api-key", "payload": "k"}},
        frame={"parent": "world"},
        connection_check_interval="5s",
        reconnect_interval="1s",
    ),
    "network": {
        "network": {
            "fqdn": "m.local",
            "bind_address": "localhost:8081",
            "sessions": {"heartbeat_window": "5s"},
            "traffic_tunnel_endpoints": [{"port": 22, "connection_timeout": "5s"}],
        }
    },
    "network without TLS": {"network": {"no_tls": True}},
    "auth by keys": {"auth": {"handlers": [{"type": "api-key", "config": KEYS}]}},
    "packages": {
        "packages": [
            {"name": f"p-{kind}", "package": "acme/net", "version": "1", "type": kind}
            for kind in ("ml_model", "module", "slam_map", "archive")
        ]
    },
    "package without type": {"packages": [{"name": "p", "package": "acme/net", "version": "1"}]},
    "job by duration": job(schedule="1h30m"),
    "job by cron": job(schedule="*/5 * * * *"),
    "job by cron with seconds": job(schedule="0 */5 * * * *"),
    "job without pause": job(schedule="continuous"),
    "job with a command": job(method="DoCommand", command={"do": "it"}, log_configuration={"level": "warn"}),
    "tracing": {"tracing": {"enabled": True, "disk": True, "console": True, "otlpendpoint": "localhost:4317"}},
    "maintenance": {
        **sensor(),
        "maintenance": {"sensor_name": "rdk:component:sensor/s", "maintenance_allowed_key": "ok"},
    },
    "switches": {"debug": True, "disable_log_deduplication": True, "enable_web_profile": True, "revision": "7"},
    "log": {"log": [{"pattern": "rdk.components.*", "level": "WARNING"}, {"pattern": "m", "level": "error"}]},
    "credentials with a secret": {"cloud": {"id": "a", "secret": "b", "app_address": "https://cloud.example:443"}},
    "credentials with a key": {
        "cloud": {
            "id": "a",
            "api_key": {"id": "b", "key": "c"},
            "app_address": "https://cloud.example:443",
            "signaling_address": "cloud.example:443",
            "refresh_interval": "5s",
        }
    },
    "settings of the agent": {"agent": {"version_control": {"agent": "stable"}}},
    "remote with the older secret": remote(secret="s", managed_by="me"),
    "network with certificates": {"network": {"tls_cert_file": "/a.pem", "tls_key_file": "/b.pem"}},
    # ---- text
    "variable with a default": '{"components": [], "debug": ${DEBUG:-true}}',
    "variable without braces": json.dumps(module(env={"A": "$HOME"})),
    "variable with another text": json.dumps(module(env={"A": "${HOME:+/elsewhere}"})),
    "placeholder of the environment": json.dumps(module(env={"A": "${environment.HOME}"})),
    # ---- models
    **{
        f"fake {kind}": {"components": [resource(kind, "fake")]}
        for kind in (
            *("arm", "audio_in", "audio_out", "base", "board", "button", "camera", "encoder", "gantry", "generic"),
            *("gripper", "input_controller", "motor", "movement_sensor", "pose_tracker", "power_sensor", "sensor"),
            *("servo", "switch"),
        )
    },
    "fake motor with pins and no board": {"components": [resource("motor", "fake", pins=PINS, max_rpm=60)]},
    "fake camera with a size": {"components": [resource("camera", "fake", width=320, height=240)]},
    "gpio motor": components(
        resource(
            "motor",
            "gpio",
            board="pi",
            pins={**PINS, "en_low": "4"},
            min_power_pct=0.1,
            max_power_pct=0.9,
            pwm_freq=800,
            dir_flip=True,
            max_rpm=100,
        )
    ),
    "gpio motor with an encoder": components(
        ENCODER,
        resource(
            "motor",
            "gpio",
            board="pi",
            pins=PINS,
            encoder="encoder",
            ticks_per_rotation=10,
            ramp_rate=0.5,
            control_parameters=CONTROL,
        ),
    ),
    "gpiostepper": components(
        resource(
            "motor",
            "gpiostepper",
            board="pi",
            pins={"step": "1", "dir": "2", "en_low": "3"},
            ticks_per_rotation=200,
            stepper_delay_usec=20,
        )
    ),
    "gpio servo": components(
        resource(
            "servo",
            "gpio",
            board="pi",
            pin="1",
            min_angle_deg=0,
            max_angle_deg=180,
            starting_position_deg=90,
            frequency_hz=300,
            min_width_us=500,
            max_width_us=2500,
        )
    ),
    "incremental encoder": components(ENCODER),
    "single encoder": components(resource("encoder", "single", board="pi", pins={"i": "5"})),
    "wheeled base": components(*WHEELS),
    "wheeled odometry": components(
        *WHEELS,
        resource(
            "movement_sensor",
            "wheeled-odometry",
            base="base",
            left_motors=["w"],
            right_motors=["v"],
            time_interval_msecs=100,
        ),
    ),
    "gpio input controller": components(
        resource("input_controller", "gpio", board="pi", buttons={"1": {"control": "a", "debounce_msec": -1}})
    ),
    "gamepad": {"components": [resource("input_controller", "gamepad", auto_reconnect=True)]},
    "webcam": {"components": [resource("camera", "webcam", video_path="video0", width_px=640, height_px=480)]},
    "image_file": {"components": [resource("camera", "image_file", color_image_file_path="a.png")]},
    "data manager": service(
        "data_manager",
        attributes={
            "capture_dir": "/tmp/c",
            "tags": ["a"],
            "sync_interval_mins": 0.5,
            "capture_disabled": True,
            "additional_sync_paths": ["/tmp/d"],
            "maximum_num_sync_threads": 2,
        },
    ),
    "data manager's limits": service(
        "data_manager",
        attributes={
            "file_last_modified_millis": 10,
            "maximum_capture_file_size_bytes": 1000,
            "delete_every_nth_when_disk_full": 5,
            "disk_usage_deletion_threshold": 0.9,
            "capture_dir_deletion_threshold": 0.5,
            "selective_syncer_name": "s",
            "sync_disabled": True,
            "capture_control_sensor": {"name": "s", "key": "k"},
        },
    ),
    "capture with everything": sensor(
        service_configs=[
            {
                "type": "data_manager",
                "attributes": {
                    "capture_methods": [
                        {
                            "method": "Readings",
                            "capture_frequency_hz": 1,
                            "additional_params": {},
                            "disabled": True,
                            "capture_queue_size": 250,
                            "capture_buffer_size": 4096,
                            "tags": ["a"],
                        }
                    ]
                },
            }
        ]
    ),
    "analogs and interrupts": {
        "components": [
            resource(
                "board",
                "fake",
                analogs=[
                    {
                        "name": "a",
                        "pin": "1",
                        "spi_bus": "0",
                        "chip_select": "0",
                        "average_over_ms": 10,
                        "samples_per_sec": 10,
                    }
                ],
                digital_interrupts=[{"name": "i", "pin": "1"}],
            )
        ]
    },
    "transform": components(
        resource("camera", "fake"),
        {
            "name": "small",
            "api": "rdk:component:camera",
            "model": "transform",
            "attributes": {
                "source": "camera",
                "pipeline": [{"type": "resize", "attributes": {"width_px": 10, "height_px": 10}}],
            },
        },
    ),
    "color_detector": service(
        "vision",
        "color_detector",
        attributes={"detect_color": "#ff0000", "hue_tolerance_pct": 0.1, "segment_size_px": 100},
    ),
    "webcam with its lens": {
        "components": [
            resource(
                "camera",
                "webcam",
                video_path="v",
                format="MJPEG",
                frame_rate=30,
                intrinsic_parameters={"width_px": 640, "height_px": 480, "fx": 1, "fy": 1, "ppx": 1, "ppy": 1},
                distortion_parameters={"rk1": 0},
            )
        ]
    },
    "image_file without a file": {"components": [resource("camera", "image_file", preloaded_image="pizza")]},
    "shell": service("shell"),
    "generic service": service("generic", "fake"),
    "discovery fake": service("discovery", "fake"),
    "sensors": service("sensors"),
}

WARNED: dict[str, tuple[Any, str]] = {
    "unknown key": ({"comment": "of a person"}, "unknown key"),
    "processes, which the reference ignores too": (
        {"processes": [{"id": "p", "name": "/bin/true"}]},
        "processes are not run",
    ),
    "mesh": (
        sensor(frame={"parent": "world", "geometry": {"type": "mesh", "mesh_data": "aa", "mesh_content_type": "ply"}}),
        "meshes are not used",
    ),
    "variable that is not set": (
        json.dumps(module(env={"A": "${NOT_SET_ANYWHERE}"})),
        "the environment has no NOT_SET_ANYWHERE",
    ),
}
"""Features that work except for the part named by the warning."""

MISSING: dict[str, tuple[str, ...]] = {
    "rdk:component:board": ("esp32",),
    "rdk:component:camera": ("ffmpeg", "replay_pcd"),
    "rdk:component:movement_sensor": ("replay",),
    "rdk:service:video": ("fake",),
}
"""Models of the reference that this product lacks, by API."""

REFUSED: dict[str, tuple[Any, str]] = {
    "analog axes of the gpio input controller": (
        components(
            resource(
                "input_controller",
                "gpio",
                board="pi",
                buttons={"1": {"control": "a"}},
                axes={"x": {"control": "b"}},
            )
        ),
        "not built: axes on analog inputs",
    ),
    "capture into a database": (
        service("data_manager", attributes={"mongo_capture_config": {"uri": "mongodb://localhost"}}),
        "not built: ",
    ),
    "kinematics of the fake gantry": (
        {"components": [resource("gantry", "fake", model_path="a.json")]},
        "not built: kinematics of a simulated gantry",
    ),
    "kinematics of the fake gripper": (
        {"components": [resource("gripper", "fake", **{"model-path": "a.json"})]},
        "not built: kinematics of a simulated gripper",
    ),
    "client certificates": (
        {"auth": {"tls_auth_entities": ["me"]}},
        "auth.tls_auth_entities: not built: logging in with client certificates",
    ),
    "tokens of another issuer": (
        {"auth": {"handlers": [{"type": "api-key", "config": KEYS}], "external_auth_config": {"jwks": {"keys": []}}}},
        "auth.external_auth_config: not built: tokens of another issuer",
    ),
    **{
        f"{model} of {api}": (
            {f"{api.split(':')[1]}s": [{"name": "it", "api": api, "model": model}]},
            "not built: ",
        )
        for api, models in MISSING.items()
        for model in models
    },
}


def found_in(tmp_path: Path, document: Any) -> tuple[list[str], list[str]]:
    path = tmp_path / "machine.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    checked = check(path, environment={"HOME": "/home/me"})
    return [str(problem) for problem in checked.problems], [str(warning) for warning in checked.warnings]


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_without_a_word(name: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, ACCEPTED[name]) == ([], [])


@pytest.mark.parametrize("name", WARNED)
def test_accepted_but_for_what_the_warning_names(name: str, tmp_path: Path) -> None:
    document, text = WARNED[name]
    problems, (warning,) = found_in(tmp_path, document)
    assert problems == []
    assert text in warning


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name: str, tmp_path: Path) -> None:
    document, text = REFUSED[name]
    (problem,), _ = found_in(tmp_path, document)
    assert text in problem

"""The whole document: no mistake hides or blocks the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schema.document.machine import (
    KEYS,
    Decoded,
    MachineDocument,
    decode_document,
    decode_document_value,
    default_services,
)
from schema.errors import ConfigError
from schema.names import ResourceName


def motor(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "api": "rdk:component:motor", "model": "fake", **more}


def read(**parts: Any) -> Decoded:
    return decode_document(json.dumps(parts).encode())


def document(result: Decoded) -> MachineDocument:
    assert result.document is not None
    return result.document


def texts(findings: tuple[ConfigError, ...]) -> list[str]:
    return [str(finding) for finding in findings]


def test_an_empty_document_has_the_defaults() -> None:
    result = read()
    assert result == Decoded(MachineDocument())
    assert document(result).network.sessions.heartbeat_window == 2.0


def test_every_key_is_read() -> None:
    result = read(
        cloud={"id": "p", "api_key": {"id": "i", "key": "k"}, "app_address": "https://x", "refresh_interval": "5s"},
        modules=[{"name": "m", "executable_path": "/bin/true", "env": {"A": "b"}, "log_level": "debug"}],
        remotes=[{"name": "r", "address": "r.local:8080", "prefix": "p"}],
        components=[motor("left", attributes={"max_rpm": 60}, depends_on=["b"])],
        services=[{"api": "rdk:service:motion"}],
        packages=[{"name": "p", "package": "o/p", "version": "1", "type": "slam_map"}],
        network={
            "bind_address": ":80",
            "sessions": {"heartbeat_window": "30ms"},
            "traffic_tunnel_endpoints": [{"port": 22}],
        },
        auth={"handlers": [{"type": "api-key", "config": {"id": "key", "keys": ["id"]}}]},
        debug=True,
        enable_web_profile=True,
        log=[{"pattern": "rdk.*", "level": "Debug"}],
        revision="7",
        maintenance={"sensor_name": "rdk:component:sensor/s", "maintenance_allowed_key": "ok"},
        disable_log_deduplication=True,
        jobs=[{"name": "j", "schedule": "*/5 * * * *", "resource": "left", "method": "Stop"}],
        tracing={"enabled": True, "otlpendpoint": "localhost:4317"},
        agent={"version_control": {"agent": "stable"}},
        triggers=[{"name": "t"}],
    )
    assert (result.problems, result.warnings) == ((), ())
    doc = document(result)
    assert doc.cloud is not None
    assert doc.cloud.refresh_interval == 5
    assert doc.modules[0].env == {"A": "b"}
    assert doc.remotes[0].prefix == "p"
    assert str(doc.components[0].name) == "rdk:component:motor/left"
    assert doc.packages[0].type == "slam_map"
    assert doc.network.sessions.heartbeat_window == 0.03
    assert doc.network.traffic_tunnel_endpoints[0].connection_timeout == 10
    assert doc.auth.api_keys == {"id": "key"}
    assert (doc.debug, doc.enable_web_profile, doc.disable_log_deduplication, doc.revision) == (True, True, True, "7")
    assert doc.maintenance is not None
    assert doc.maintenance.sensor == ResourceName.parse("rdk:component:sensor/s")
    assert doc.tracing.otlp_endpoint == "localhost:4317"
    assert doc.agent == {"version_control": {"agent": "stable"}}
    assert doc.triggers == ({"name": "t"},)


def test_a_bad_entry_is_left_out_and_listed_and_the_others_stay() -> None:
    result = read(components=[motor("a"), motor("b", attributes=3), motor("c")])
    assert [e.name.name for e in document(result).components] == ["a", "c"]
    assert [e.path for e in document(result).components] == ["components.0", "components.2"]
    (broken,) = document(result).broken
    assert (broken.section, broken.path, broken.name, str(broken.resource)) == (
        "components",
        "components.1",
        "b",
        "rdk:component:motor/b",
    )
    assert texts(broken.problems) == texts(result.problems)
    assert texts(result.problems) == ["components.1.attributes: must be an object, not 3: write an object"]


def test_every_mistake_of_an_entry_is_reported() -> None:
    result = read(components=[{"name": "a b", "depends_on": [1, "x", ""], "frame": {"translation": {"x": "1"}}}])
    assert [problem.path for problem in result.problems] == [
        "components.0",  # api
        "components.0.name",
        "components.0",  # model
        "components.0.frame.translation.x",
        "components.0.depends_on.0",
    ]


def test_an_entry_of_any_json_type_is_survived() -> None:
    for section in ("components", "services", "modules", "remotes", "packages", "jobs", "log"):
        result = read(**{section: [None, 1, "x", [], {}, True]})
        assert len(document(result).broken) in {5, 6}  # a service may omit name and model, but not api
        assert all(problem.path.startswith(section) for problem in result.problems)


def test_duplicates_are_unusable_all_of_them_and_name_each_other() -> None:
    result = read(components=[motor("a"), motor("b"), motor("a"), motor("a")])
    assert [e.name.name for e in document(result).components] == ["b"]
    assert texts(result.problems) == [
        f"components.{own}.name: 'rdk:component:motor/a' is also the name of {others}: "
        "rename or remove all but one; none of them is used until then"
        for own, others in (
            (0, "components.2, components.3"),
            (2, "components.0, components.3"),
            (3, "components.0, components.2"),
        )
    ]
    assert {str(broken.resource) for broken in document(result).broken} == {"rdk:component:motor/a"}


def test_one_name_in_two_apis_is_not_a_duplicate() -> None:
    result = read(services=[{"api": "rdk:service:motion"}, {"api": "rdk:service:data_manager"}])
    assert len(document(result).services) == 2


@pytest.mark.parametrize(
    ("section", "entry"),
    [
        ("modules", {"executable_path": "/bin/%d"}),
        ("remotes", {"address": "x"}),
        ("packages", {"package": "o/n"}),
        ("jobs", {"schedule": "1s", "resource": "a", "method": "M"}),
    ],
)
def test_duplicates_in_every_named_section(section: str, entry: dict[str, str]) -> None:
    entries = [json.loads(json.dumps({"name": name, **entry}).replace("%d", str(i))) for i, name in enumerate("aab")]
    result = read(**{section: entries})
    assert [e.name for e in getattr(document(result), section)] == ["b"]
    assert [p.path for p in result.problems] == [f"{section}.0.name", f"{section}.1.name"]


def test_two_modules_may_not_share_a_program() -> None:
    result = read(modules=[{"name": name, "executable_path": "/bin/x"} for name in "ab"])
    assert document(result).modules == ()
    assert "is also the program of modules.1" in str(result.problems[0])


def test_unknown_keys_are_warnings_with_the_nearest_known() -> None:
    result = read(componets=[], components=[motor("a", atributes={})], network={"bindaddress": ":1"})
    assert document(result).components[0].name.name == "a"
    assert sorted(texts(result.warnings)) == [
        "components.0.atributes: unknown key: did you mean 'attributes'?",
        "componets: unknown key: did you mean 'components'?",
        "network.bindaddress: unknown key: did you mean 'bind_address'?",
    ]


def test_processes_are_ignored_with_a_warning() -> None:
    result = read(processes=[{"id": "x"}])
    assert texts(result.warnings) == ["processes: processes are not run: create a module or a systemd unit for each"]
    assert read(processes=[]).warnings == ()


@pytest.mark.parametrize("key", KEYS)
def test_null_is_as_good_as_absent(key: str) -> None:
    assert read(**{key: None}) == Decoded(MachineDocument())


@pytest.mark.parametrize("section", ["components", "services", "modules", "remotes", "packages", "jobs", "log"])
def test_a_section_that_is_not_a_list_makes_the_document_unusable(section: str) -> None:
    result = read(**{section: {"name": "x"}})
    assert result.document is None
    assert "must be a list" in str(result.problems[0])


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ({"auth": {"handlers": [{"type": "password"}]}}, "auth.handlers.0.type"),
        ({"auth": {"handlers": [{"type": "api-key"}, {"type": "api-key"}]}}, "auth.handlers.1"),
        ({"auth": {"handlers": [{"type": "api-key", "config": {"id": 7}}]}}, "auth.handlers.0.config.id"),
        ({"network": {"bind_address": "8080"}}, "network.bind_address"),
        ({"network": {"bind_address": ":99999"}}, "network.bind_address"),
        ({"network": {"allowed_origins": ["http://a", "*"]}}, "network.allowed_origins.1"),
        ({"network": {"allowed_origins": ["https://app.example/"]}}, "network.allowed_origins.0"),
        ({"network": {"allowed_origins": ["https://App.example"]}}, "network.allowed_origins.0"),
        ({"network": {"tls_cert_file": "x"}}, "network.tls_cert_file"),
        ({"network": {"sessions": {"heartbeat_window": "10ms"}}}, "network.sessions.heartbeat_window"),
        ({"network": {"sessions": {"heartbeat_window": "2m"}}}, "network.sessions.heartbeat_window"),
        ({"network": {"traffic_tunnel_endpoints": [{"port": 0}]}}, "network.traffic_tunnel_endpoints.0.port"),
        ({"cloud": {"id": "x", "api_key": {"id": "y"}}}, "cloud.api_key"),
        ({"cloud": {"id": "x"}}, "cloud"),
        ({"cloud": {"secret": "x"}}, "cloud"),
    ],
)
def test_a_mistake_in_what_guards_the_machine_never_becomes_a_default(parts: dict[str, Any], path: str) -> None:
    result = read(**parts)
    assert result.document is None
    assert [problem.path for problem in result.problems] == [path]


def test_a_mistake_in_other_settings_leaves_the_default() -> None:
    result = read(
        debug="yes", maintenance={"sensor_name": "s", "maintenance_allowed_key": "k"}, components=[motor("a")]
    )
    assert (document(result).debug, document(result).maintenance) == (False, None)
    assert [p.path for p in result.problems] == ["maintenance.sensor_name", "debug"]
    assert len(document(result).components) == 1


@pytest.mark.parametrize(
    ("section", "entry", "path"),
    [
        ("modules", {"name": "parent", "executable_path": "x"}, "modules.0.name"),
        ("modules", {"name": "m" * 201, "executable_path": "x"}, "modules.0.name"),
        ("modules", {"name": "m"}, "modules.0"),
        ("modules", {"name": "m", "executable_path": "x", "type": "remote"}, "modules.0.type"),
        ("modules", {"name": "m", "executable_path": "x", "env": {"A": 1}}, "modules.0.env.A"),
        ("modules", {"name": "m", "executable_path": "x", "status": {"error": "gone"}}, "modules.0.status.error"),
        ("modules", {"name": "m", "executable_path": "x", "first_run_timeout": "soon"}, "modules.0.first_run_timeout"),
        ("remotes", {"name": "r"}, "remotes.0"),
        ("remotes", {"name": "a:b", "address": "x"}, "remotes.0.name"),
        ("remotes", {"name": "r", "address": "x", "frame": {"parent": 3}}, "remotes.0.frame.parent"),
        ("packages", {"name": "p", "package": "o/n", "type": "zip"}, "packages.0.type"),
        ("jobs", {"name": "j", "schedule": "never", "resource": "a", "method": "M"}, "jobs.0.schedule"),
        ("jobs", {"name": "j", "schedule": "0s", "resource": "a", "method": "M"}, "jobs.0.schedule"),
        ("jobs", {"name": "j", "schedule": "1s", "resource": "", "method": "M"}, "jobs.0.resource"),
        ("log", {"pattern": "x"}, "log.0"),
    ],
)
def test_limits_of_entries(section: str, entry: dict[str, Any], path: str) -> None:
    result = read(**{section: [entry]})
    assert [problem.path for problem in result.problems] == [path]
    assert [broken.section for broken in document(result).broken] == [section]


@pytest.mark.parametrize("schedule", ["30s", "1h30m", "continuous", "0 * * * *", "0 30 3 * * MON-FRI", "*/5 1,2 * * ?"])
def test_schedules(schedule: str) -> None:
    assert read(jobs=[{"name": "j", "schedule": schedule, "resource": "a", "method": "M"}]).problems == ()


def test_a_module_says_how_it_is_to_be_started() -> None:
    (local, registry) = document(
        read(
            modules=[
                {"name": "a", "executable_path": "a.tar.gz", "first_run_timeout": "-1s"},
                {"name": "b", "type": "registry", "module_id": "ns:b", "first_run_timeout": 5_000_000_000},
            ]
        )
    ).modules
    assert (local.is_archive, local.first_run_limit) == (True, 3600)
    assert (registry.is_archive, registry.first_run_limit) == (False, 5)


def test_default_services_give_way_to_configured_ones() -> None:
    (entry,) = default_services(MachineDocument())
    assert (str(entry.name), str(entry.model)) == ("rdk:service:motion/builtin", "rdk:builtin:builtin")
    assert default_services(document(read(services=[{"api": "rdk:service:motion"}]))) == ()
    assert default_services(document(read(services=[{"api": "rdk:service:motion", "attributes": 1}]))) == ()
    assert default_services(document(read(services=[{"api": "rdk:service:motion", "name": "mine"}]))) == (entry,)


def test_no_repr_shows_a_secret() -> None:
    secret = "hunter2"
    result = read(
        cloud={"id": "p", "secret": secret, "location_secrets": [{"id": "l", "secret": secret}]},
        modules=[{"name": "m", "executable_path": "x", "env": {"MY_TOKEN": secret}}],
        remotes=[
            {
                "name": "r",
                "address": "x",
                "secret": secret,
                "auth": {"credentials": {"type": "api-key", "payload": secret}, "entity": "e"},
            }
        ],
        auth={"handlers": [{"type": "api-key", "config": {"id": secret}}]},
        components=[
            motor("a", attributes={"password": secret, "url": f"rtsp://u:{secret}@host/x"}),
            motor("b", password=secret),
        ],
        agent={"psk": secret},
        triggers=[secret],
        secret=secret,
    )
    assert document(result).components[0].attributes["password"] == secret
    assert secret not in repr(result)
    assert secret not in str([*result.problems, *result.warnings])
    assert secret not in repr([vars(finding) for finding in (*result.problems, *result.warnings)])


@pytest.mark.parametrize("value", [None, 1, "x", [], True])
def test_a_document_must_be_an_object(value: Any) -> None:
    decoded = decode_document_value(value)
    assert decoded.document is None
    assert "must be an object" in str(decoded.problems[0])


def test_a_repeated_key_is_a_warning() -> None:
    decoded = decode_document(b'{"debug": false, "agent": {"x": 1, "x": 2}, "debug": true}')
    assert decoded.document is not None
    assert decoded.document.debug
    assert [str(warning) for warning in decoded.warnings] == [
        f"{path}: this key occurs more than once: remove all but one: only the last is used"
        for path in ("debug", "agent.x")
    ]


@pytest.mark.parametrize(
    "text", [b'{"auth": {"handlers": []}, "auth": {}}', b'{"network": {"fqdn": "a", "fqdn": "b"}}']
)
def test_a_repeated_key_where_access_is_decided_leaves_no_document(text: bytes) -> None:
    decoded = decode_document(text)
    assert decoded.document is None
    assert len(decoded.problems) == 1


def test_places_count_the_broken_entries() -> None:
    ok = {"executable_path": "/m", "type": "local"}
    modules = [{"name": "a", **ok, "executable_path": "/a"}, {}, {"name": "b", **ok, "executable_path": "/b"}, 1]
    document = decode_document(json.dumps({"modules": modules}).encode()).document
    assert document is not None
    assert document.places("modules") == ("modules.0", "modules.2")
    assert document.places("jobs") == ()

"""Reading of the settings: defaults, layers, problems with path and remedy, secrets."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.agent.reading import SECTIONS, read_settings
from schema.agent.records import (
    AdditionalNetwork,
    MaintenanceWindow,
    NetworkConfiguration,
    Settings,
    VersionControl,
)
from schema.agent.rules import fields_of
from schema.errors import ConfigErrors
from tests.unit.schema.agent.tables import (
    KEYS,
    NETWORK_KEYS,
    NIGHT,
    PASSWORD,
    WIFI,
    WINDOW_KEYS,
    Key,
    from_cloud,
    others,
)

DEFAULTS = Settings()
VALID = [
    pytest.param(key, written, value, id=f"{key.key}-{written!r:.30}") for key in KEYS for written, value in key.valid
]
INVALID = [
    pytest.param(key, written, remedy, id=f"{key.key}-{str(written)[:20]!r}")
    for key in KEYS
    for written, remedy in key.invalid
]


def test_the_tables_have_every_key() -> None:
    assert {(key.section, key.key, key.name) for key in KEYS} == {
        (section, key, field.name) for section, cls in SECTIONS.items() for key, field in fields_of(cls).items()
    }
    assert NETWORK_KEYS.keys() == fields_of(AdditionalNetwork).keys()
    assert {*Settings.__struct_fields__} == {*SECTIONS, "additional_networks"}


@pytest.mark.parametrize("document", [None, {}, {section: {} for section in SECTIONS}, dict.fromkeys(SECTIONS)])
@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.key)
def test_an_absent_key_has_its_default(key: Key, document: Any) -> None:
    settings, problems = read_settings(document, document)
    assert key.of(settings) == key.default
    assert (settings, problems) == (DEFAULTS, ())


@pytest.mark.parametrize(("key", "written", "value"), VALID)
def test_a_valid_value_counts(key: Key, written: Any, value: Any) -> None:
    for documents in ((key.document(written), None), (None, key.document(written)), ({}, key.document(written))):
        settings, problems = read_settings(*documents)
        assert problems == ()
        assert key.of(settings) == value
        assert type(key.of(settings)) is type(value)
        assert others(settings, key) == others(DEFAULTS, key)


@pytest.mark.parametrize(("key", "written", "remedy"), INVALID)
def test_an_invalid_value_is_a_problem_and_the_default_counts(key: Key, written: Any, remedy: str) -> None:
    settings, problems = read_settings(None, key.document(written))
    assert [(problem.path, problem.remedy) for problem in problems] == [(key.path, remedy)]
    assert problems[0].value is not None
    assert settings == DEFAULTS


@pytest.mark.parametrize("wrong", [True, 17, -math.inf, "?\0?", [1], {"a": 1}, [[]]], ids=repr)
@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.key)
def test_a_wrong_value_affects_no_other_field(key: Key, wrong: Any) -> None:
    """Walk all fields, so that no field is forgotten: `wrong` is either valid there, or exactly one problem."""
    rest: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for other in KEYS:
        rest[other.section][other.key] = other.valid[0][0]
    expected, problems = read_settings(None, rest)
    assert problems == ()
    rest[key.section][key.key] = wrong
    settings, problems = read_settings(None, {**rest, "additional_networks": {"office": WIFI}})
    assert [*settings.additional_networks] == ["office"]
    if problems:
        assert len(problems) == 1
        assert problems[0].path.startswith(key.path)
        assert problems[0].remedy
        assert key.of(settings) == key.default
    else:
        assert key.of(settings) in (wrong, 17 * 60.0, 17 * 3600.0)
    assert {**others(settings, key), ("additional_networks", ""): {}} == others(expected, key)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.key)
def test_later_layers_win_for_each_field(key: Key) -> None:
    (first, from_defaults), (second, from_the_cloud) = key.valid[0], key.valid[-1]
    other = next(other for other in KEYS if other.section == key.section and other is not key)
    kept = {other.key: other.valid[0][0]}
    settings, problems = read_settings({key.section: {key.key: first, **kept}}, key.document(second))
    assert problems == ()
    assert (key.of(settings), other.of(settings)) == (from_the_cloud, other.valid[0][1])
    settings, problems = read_settings({key.section: {key.key: first, **kept}}, key.document(None))
    assert (key.of(settings), problems) == (from_defaults, ())


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.key)
def test_an_invalid_value_leaves_that_of_the_earlier_layer(key: Key) -> None:
    (first, value), wrong = key.valid[0], key.invalid[0][0]
    settings, problems = read_settings(key.document(first), key.document(wrong))
    assert (key.of(settings), [problem.path for problem in problems]) == (value, [key.path])
    settings, problems = read_settings(key.document(wrong), key.document(first))
    assert (key.of(settings), [problem.path for problem in problems]) == (value, [f"defaults{key.path[5:]}"])


@pytest.mark.parametrize(
    ("document", "path", "text"),
    [
        (5, "agent", "agent: is not an object: write an object or remove the key"),
        (
            {"debug": True},
            "agent.debug",
            "agent.debug: unknown key: use one of additional_networks, advanced_settings, ",
        ),
        ({"network_config": {}}, "agent.network_config", ": unknown key: did you mean 'network_configuration'?"),
        ({"advanced_settings": []}, "agent.advanced_settings", ": is not an object"),
        (
            {"network_configuration": {"hotspot_prefx": "secret"}},
            "agent.network_configuration.hotspot_prefx",
            ": unknown key: did you mean 'hotspot_prefix'?",
        ),
        ({"network_configuration": {"zzz": 1}}, "agent.network_configuration.zzz", "unknown key: remove the key"),
        ({"additional_networks": ["x"]}, "agent.additional_networks", ": is not an object"),
        ({"additional_networks": {"office": "x"}}, "agent.additional_networks.office", ": is not an object"),
        (
            {"additional_networks": {"office": {"ssid": "x"}}},
            "agent.additional_networks.office",
            ": 'type' is missing: add 'type': one of 'wifi', 'wired'",
        ),
    ],
)
def test_an_unknown_key_or_a_value_of_the_wrong_type_is_a_problem(document: Any, path: str, text: str) -> None:
    settings, problems = read_settings(None, document)
    assert settings == DEFAULTS
    (problem,) = problems
    assert problem.path == path
    assert text in str(problem)
    assert problem.value is None


def test_an_unknown_key_keeps_the_others() -> None:
    settings, paths = from_cloud({"additional_networks": {"office": {**WIFI, "pks": "correct horse"}}, "x": 1})
    assert paths == ["agent.x", "agent.additional_networks.office.pks"]
    assert settings.additional_networks == {"office": AdditionalNetwork(type="wifi", ssid="office")}


def test_deep_nesting_is_a_problem() -> None:
    deep: Any = {}
    for _ in range(10_000):
        deep = {"a": [deep]}
    settings, problems = read_settings({"advanced_settings": deep}, {"advanced_settings": {"debug": True}})
    assert settings.advanced_settings.debug
    assert [problem.path[:30] for problem in problems] == ["defaults.advanced_settings.a.0"]


@pytest.mark.parametrize("key", NETWORK_KEYS)
def test_networks_with_valid_values(key: str) -> None:
    value, _ = NETWORK_KEYS[key]
    fitting = {"ipv4_address": "192.168.1.20/24"} if key == "ipv4_gateway" else {}
    written = msgspec.to_builtins(value)
    settings, paths = from_cloud({"additional_networks": {"a b": {**WIFI, **fitting, key: written}}})
    assert paths == []
    assert getattr(settings.additional_networks["a b"], key) == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    ("key", "wrong", "remedy"),
    [
        pytest.param(key, wrong, remedy, id=f"{key}-{wrong!r:.20}")
        for key, (_, wrongs) in NETWORK_KEYS.items()
        for wrong, remedy in wrongs
    ],
)
def test_a_network_with_an_invalid_value_is_left_out(key: str, wrong: Any, remedy: str) -> None:
    networks = {"office": {**WIFI, key: wrong}, "lab": {"type": "wired"}}
    settings, problems = read_settings(None, {"additional_networks": networks})
    (problem,) = problems
    assert problem.path == f"agent.additional_networks.office.{key}"
    assert problem.remedy == remedy
    assert settings.additional_networks == {"lab": AdditionalNetwork(type="wired")}
    settings, _ = read_settings({"additional_networks": {"office": WIFI}}, {"additional_networks": networks})
    assert settings.additional_networks["office"] == AdditionalNetwork(type="wifi", ssid="office")


def test_metrics_of_routes() -> None:
    metrics = [AdditionalNetwork(type="wired"), AdditionalNetwork(type="wifi", ssid="x")]
    assert [network.route_metric for network in metrics] == [100, 600]
    assert AdditionalNetwork(type="wired", ipv4_route_metric=7).route_metric == 7


REBOOT, IDLE, OFFLINE = (
    "device_reboot_after_offline_minutes", "user_idle_minutes", "offline_before_starting_hotspot_minutes",
)  # fmt: skip


@pytest.mark.parametrize(
    ("defaults", "cloud", "minutes", "problem"),
    [
        ({}, {REBOOT: 5}, 5, None),
        ({}, {REBOOT: 4}, 0, "agent"),
        ({}, {REBOOT: 10, IDLE: 11}, 0, "agent"),
        ({}, {REBOOT: 10, OFFLINE: "10m1s"}, 0, "agent"),
        ({REBOOT: 30}, {REBOOT: 4}, 30, "agent"),
        ({REBOOT: 30}, {REBOOT: 0}, 0, None),
        ({REBOOT: 30}, {IDLE: 31}, 0, "defaults"),
        ({REBOOT: 4}, {IDLE: 3}, 4, None),
        ({REBOOT: 0}, {REBOOT: 4}, 0, "agent"),
        ({REBOOT: 6}, {REBOOT: 4, IDLE: 7}, 0, "agent"),
    ],
)
def test_a_reboot_leaves_time_for_provisioning(
    defaults: dict[str, Any], cloud: dict[str, Any], minutes: float, problem: str | None
) -> None:
    settings, problems = read_settings({"network_configuration": defaults}, {"network_configuration": cloud})
    assert settings.network_configuration.device_reboot_after_offline == minutes * 60
    assert [each.path for each in problems] == ([f"{problem}.network_configuration.{REBOOT}"] if problem else [])


def test_the_text_of_a_short_reboot() -> None:
    _, (problem,) = read_settings(None, {"network_configuration": {REBOOT: 4}})
    assert str(problem) == (
        f"agent.network_configuration.{REBOOT}: 4m is shorter than {OFFLINE} or {IDLE}: write 0, or at least 5 minutes"
    )


def test_the_other_name_of_machine_server() -> None:
    settings, paths = from_cloud({"version_control": {"viam-server": "1.2.3"}})
    assert (settings.version_control.machine_server, paths) == ("1.2.3", [])
    settings, paths = from_cloud({"version_control": {"viam-server": "latest"}})
    assert (settings.version_control, paths) == (VersionControl(), ["agent.version_control.viam-server"])
    settings, paths = from_cloud({"version_control": {"viam-server": "1.2.3", "machine-server": "dev"}})
    assert (settings.version_control.machine_server, paths) == ("dev", ["agent.version_control.viam-server"])
    settings, paths = from_cloud({"version_control": {"viam-server": "1.2.3", "machine-server": None}})
    assert (settings.version_control.machine_server, paths) == ("1.2.3", [])


def test_plain_http_needs_the_consent_of_the_device() -> None:
    document = {"version_control": {"machine-server": "http://user:hunter2@example.com/a"}}
    settings, problems = read_settings(document, document)
    assert settings == DEFAULTS
    assert [problem.path for problem in problems] == [
        f"{root}.version_control.machine-server" for root in ("defaults", "agent")
    ]
    assert "hunter2" not in f"{problems} {problems[0]} {problems[0].value}"
    settings, problems = read_settings(None, document, allow_http=True)
    assert (settings.version_control.machine_server, problems) == (document["version_control"]["machine-server"], ())


def test_the_ssid_of_the_hotspot() -> None:
    assert NetworkConfiguration().ssid("Pi-4") == "machine-setup-pi-4"
    assert NetworkConfiguration(hotspot_ssid="Lab").ssid("pi") == "Lab"
    assert NetworkConfiguration(hotspot_prefix="ä" * 14).ssid("aäb") == "ä" * 14 + "-aä"
    assert NetworkConfiguration(hotspot_prefix="ä" * 14).ssid("aaäb") == "ä" * 14 + "-aa"


def test_a_record_with_a_wrong_value_cannot_be_created() -> None:
    with pytest.raises(ConfigErrors) as caught:
        NetworkConfiguration(hotspot_password="hunter2", hotspot_interface="a b")
    assert [problem.path for problem in caught.value.problems] == ["hotspot_interface", "hotspot_password"]
    assert f"*** is not a wifi password: {PASSWORD}" in str(caught.value)


SECRET = "hunter2-5711"
SHAPES: list[Any] = [SECRET, f"{SECRET}\0" * 6, [SECRET], {"a": SECRET}, {"a": [{"b": SECRET}]}, [[SECRET]]]


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_no_problem_shows_a_secret(shape: Any) -> None:
    bad_psk = {**WIFI, "psk": shape, "priority": "high"}
    document = {
        "version_control": {"agent": f"http://user:{SECRET}@host/", "viam-server": f"x?token={SECRET}"},
        "advanced_settings": {"viam_server_env": {"HARMLESS": shape, "B=": SECRET, "C": 1}, "viam_server_envs": shape},
        "network_configuration": {"hotspot_password": shape, "hotspot_pasword": shape},
        "additional_networks": {"a": bad_psk, "b": shape, "c": {**bad_psk, "password": shape}, "d": {"pks": shape}},
        "system_configuration": shape,
        "psk": shape,
    }
    settings, problems = read_settings(document, document)
    assert len(problems) >= 20
    for problem in problems:
        assert SECRET not in f"{problem!r} {problem} {problem.reason} {problem.remedy} {problem.value} {problem.path}"
    assert SECRET not in repr(settings)


def test_the_representation_hides_secrets() -> None:
    document = {
        "advanced_settings": {"viam_server_env": {"HARMLESS": SECRET}},
        "network_configuration": {"hotspot_password": SECRET},
        "additional_networks": {"a": {**WIFI, "psk": SECRET}},
    }
    settings, problems = read_settings(None, document)
    assert problems == ()
    assert settings.additional_networks["a"].psk == SECRET
    assert SECRET not in repr(settings)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40)
WORDS = st.sampled_from([*SECTIONS, "additional_networks", *(key.key for key in KEYS), *NETWORK_KEYS, "viam-server"])
NAMES = WORDS | st.text(max_size=8)
ANY = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4))
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        **{
            section: ANY | st.dictionaries(st.sampled_from([*fields_of(cls)]), ANY) for section, cls in SECTIONS.items()
        },
        "additional_networks": ANY | st.dictionaries(NAMES, st.dictionaries(st.sampled_from([*NETWORK_KEYS]), ANY)),
    },
)


@given(defaults=ANY | SHAPED, cloud=SHAPED, allow_http=st.booleans())
def test_no_document_raises(defaults: Any, cloud: Any, allow_http: bool) -> None:
    settings, problems = read_settings(defaults, cloud, allow_http=allow_http)
    assert all(str(problem) and problem.path.startswith(("defaults", "agent")) for problem in problems)
    assert all(problem.remedy for problem in problems)
    assert settings.network_configuration.reboots_in_time()
    assert repr(settings)


@pytest.mark.parametrize(
    ("key", "value", "remedy"), [(key, value, remedy) for key, cases in WINDOW_KEYS.items() for value, remedy in cases]
)
def test_an_invalid_window_is_a_problem_with_its_place_and_the_list_does_not_count(
    key: str, value: Any, remedy: str
) -> None:
    settings, problems = read_settings(
        None, {"advanced_settings": {"maintenance_windows": [NIGHT, {**NIGHT, key: value}]}}
    )
    assert len(problems) == 1
    assert problems[0].path.startswith(f"agent.advanced_settings.maintenance_windows.1.{key}")
    assert problems[0].remedy == remedy
    assert settings == DEFAULTS


@pytest.mark.parametrize(
    ("window", "path", "text"),
    [
        ({"start": "22:00"}, "", "'end' is missing: add 'end': a string"),
        ({**NIGHT, "day": ["mon"]}, ".day", "unknown key: did you mean 'days'?"),
        (5, "", "must be an object, not 5"),
    ],
)
def test_a_window_with_missing_or_unknown_keys_does_not_count(window: Any, path: str, text: str) -> None:
    settings, problems = read_settings(None, {"advanced_settings": {"maintenance_windows": [window]}})
    assert [problem.path for problem in problems] == [f"agent.advanced_settings.maintenance_windows.0{path}"]
    assert text in str(problems[0])
    assert settings == DEFAULTS


def test_the_keys_of_windows_are_all_tested() -> None:
    assert WINDOW_KEYS.keys() == fields_of(MaintenanceWindow).keys()

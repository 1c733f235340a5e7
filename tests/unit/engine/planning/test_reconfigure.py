from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from engine.components.motion.motor import Motor
from engine.components.sensing.sensor import Sensor
from engine.planning.reconfigure import PlannedResource, ResourcePlan, plan
from engine.registry import Registry, UnknownModel
from engine.resource import Attributes
from models import BUILTIN
from schema.directory import Directory
from schema.document.machine import ResourceEntry, decode_document
from schema.errors import ErrorKind, MachineError
from schema.names import API, Model, ResourceName
from telemetry.logs.rules import Rules


class Needs(Attributes):
    board: str = ""
    optional: str = ""
    explode: bool = False

    def requires(self) -> Iterable[str]:
        if self.explode:
            raise KeyError("a bug")
        return [self.board] if self.board else []

    def uses(self) -> Iterable[str]:
        return [self.optional] if self.optional else []


class AMotor(Motor):
    Config = Needs


class ASensor(Sensor):
    pass


MOTOR, SENSOR = "rdk:component:motor", "rdk:component:sensor"


def registry() -> Registry:
    result = Registry({(MOTOR, "rdk:builtin:absent"): "runtime.no_such_module:Nothing"})
    result.add(AMotor.API, Model.parse("test"), AMotor)
    result.add(ASensor.API, Model.parse("test"), ASensor)
    return result


def planned(*components: dict[str, Any], **more: Any) -> ResourcePlan:
    entries = [{"api": MOTOR, "model": "test", **entry} for entry in components]
    document = decode_document(json.dumps({"components": entries, **more}).encode()).document
    assert document is not None
    return plan(document, registry())


def test_dependencies_come_from_three_places_and_become_full_names() -> None:
    result = planned(
        {"name": "m", "depends_on": ["s"], "attributes": {"board": f"{MOTOR}/b", "optional": "o"}},
        {"name": "s", "api": SENSOR},
        {"name": "b"},
        {"name": "o"},
    ).resources[f"{MOTOR}/m"]
    assert result.fault is None
    assert result.requires == {f"{SENSOR}/s", f"{MOTOR}/b"}
    assert result.uses == {f"{MOTOR}/o"}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"model": "tset"}, ["components.0", "did you mean 'test'?"]),
        ({"model": "absent"}, ["could not be loaded", "runtime.no_such_module"]),
        ({"api": "rdk:component:gripper"}, ["not built", "models of rdk:component:gripper", "add a module"]),
        ({"depends_on": ["otherr"]}, ["components.0.depends_on.0", "did you mean 'other'"]),
        ({"depends_on": ["m"]}, ["depends on itself"]),
        ({"depends_on": ["twin"]}, [f"{MOTOR}/twin or {SENSOR}/twin", "full name"]),
        ({"depends_on": [f"{MOTOR}/nope"]}, ["no resource", "nope"]),
        ({"attributes": {"board": 7}}, ["components.0.attributes.board", "7"]),
        ({"attributes": {"explode": True}}, ["cannot read its configuration", "a bug"]),
    ],
)
def test_a_faulty_entry_affects_no_other_resource(entry: dict[str, Any], words: list[str]) -> None:
    result = planned({"name": "m", **entry}, {"name": "other"}, {"name": "twin"}, {"name": "twin", "api": SENSOR})
    (faulty,) = [resource for resource in result.resources.values() if resource.fault is not None]
    assert faulty.name.name == "m"
    for word in words:
        assert word in str(faulty.fault)


def test_a_double_name_is_one_node_that_names_both_places() -> None:
    result = planned({"name": "m"}, {"name": "m"}, {"name": "n", "depends_on": ["m"]})
    assert set(result.resources) == {f"{MOTOR}/m", f"{MOTOR}/n"}
    fault = str(result.resources[f"{MOTOR}/m"].fault)
    assert "components.0" in fault
    assert "components.1" in fault
    assert result.resources[f"{MOTOR}/n"].requires == {f"{MOTOR}/m"}  # it waits and has no fault of its own


def test_an_absent_optional_resource_is_not_a_fault() -> None:
    result = planned({"name": "m", "attributes": {"optional": "later"}}).resources[f"{MOTOR}/m"]
    assert result.fault is None
    assert result.uses == frozenset()


class Starting:
    """One module that has not yet reported which models it offers."""

    def offers(self, entry: ResourceEntry) -> bool:
        return False

    def plan_resource(self, entry: ResourceEntry, directory: Directory, levels: Rules) -> PlannedResource:
        raise NotImplementedError

    def not_ready(self) -> dict[str, str]:
        return {"internal/module/mod": "starting"}

    def starting(self) -> list[str]:
        return ["internal/module/mod"]


def test_modules_are_blamed_for_an_unknown_model_only_if_there_are_any() -> None:
    entry = {"name": "m", "api": MOTOR, "model": "acme:motors:big"}
    document = decode_document(json.dumps({"components": [entry]}).encode()).document
    assert document is not None
    with_modules = plan(document, registry(), modules=Starting()).resources[f"{MOTOR}/m"]
    without = plan(document, registry()).resources[f"{MOTOR}/m"]
    assert "mod (starting)" in str(with_modules.fault)
    assert "modules" not in str(without.fault)


def test_the_version_changes_with_what_matters_only() -> None:
    def version(**entry: Any) -> object:
        return planned({"name": "other"}, {"name": "m", **entry}).resources[f"{MOTOR}/m"].version

    assert version() == version(frame={"parent": "world"}) == version(log_configuration={"level": "debug"})
    assert version() != version(attributes={"board": "other"})
    assert version() != version(model="absent")
    assert version(model="nothing") == version(model="nothing")


def test_unknown_keys_are_warned_of_with_their_path() -> None:
    warnings = planned({"name": "m", "attributes": {"bord": "x"}}).warnings
    assert [warning.path for warning in warnings] == ["components.0.attributes.bord"]


def test_registry_refuses_a_pair_twice_and_finds_lazily() -> None:
    result = Registry({(SENSOR, "rdk:builtin:fake"): "models.fake.sensor.model:FakeSensor"})
    api, model = API.parse(SENSOR), Model.parse("fake")
    assert not result.is_loaded(api, model)
    assert result.find(api, model).__name__ == "FakeSensor"
    assert result.is_loaded(api, model)
    with pytest.raises(MachineError) as caught:
        result.add(api, model, ASensor)
    assert caught.value.kind is ErrorKind.EXISTS
    with pytest.raises(UnknownModel):
        result.find(api, Model.parse("nothing"))


def test_every_builtin_can_be_loaded() -> None:
    result = Registry(BUILTIN)
    for api, model in result.pairs():
        assert str(result.find(API.parse(api), Model.parse(model)).API) == api


THERMOMETER = "examples.drivers.thermometer:Thermometer"


def test_offered_drivers_are_imported_when_a_model_is_not_built_in() -> None:
    asked: list[str] = []

    def offers() -> list[str]:
        asked.append("asked")
        return [THERMOMETER]

    result = Registry({(SENSOR, "rdk:builtin:fake"): "models.fake.sensor.model:FakeSensor"}, offers=offers)
    result.find(API.parse(SENSOR), Model.parse("fake"))
    assert asked == []
    cls = result.find(API.parse(SENSOR), Model.parse("acme:demo:thermometer"))
    assert cls.__name__ == "Thermometer"
    with pytest.raises(UnknownModel):
        result.find(API.parse(SENSOR), Model.parse("acme:demo:thermometre"))
    assert asked == ["asked"]


@pytest.mark.parametrize(
    ("offer", "words"),
    [
        ("no_such_package.driver:Driver", "install the package that provides 'no_such_package'"),
        ("engine.resource:Attributes", "not a Resource class"),
        ("engine.components.sensing.sensor:Sensor", "has no model"),
    ],
)
def test_a_broken_entry_point_is_named_when_a_model_is_missing_and_affects_no_other(offer: str, words: str) -> None:
    result = Registry({}, offers=lambda: [offer, THERMOMETER])
    assert result.find(API.parse(SENSOR), Model.parse("acme:demo:thermometer"))
    with pytest.raises(UnknownModel, match=words):
        result.find(API.parse(SENSOR), Model.parse("acme:demo:other"))


def test_models_named_in_the_environment_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACHINE_MODELS", f" {THERMOMETER} ,")
    assert Registry({}).find(API.parse(SENSOR), Model.parse("acme:demo:thermometer"))


def test_using_an_api_means_all_its_resources_except_oneself() -> None:
    result = planned(
        {"name": "m", "attributes": {"optional": f"{MOTOR}/*"}},
        {"name": "n"},
        {"name": "s", "api": SENSOR},
        {"name": "broken", "depends_on": ["broken"]},
    )
    assert result.resources[f"{MOTOR}/m"].uses == {f"{MOTOR}/n", f"{MOTOR}/broken"}
    assert (
        planned({"name": "m", "attributes": {"optional": "rdk:component:arm/*"}}).resources[f"{MOTOR}/m"].uses == set()
    )


def test_an_untrusted_environment_refuses_models_that_run_programs() -> None:
    entries = [
        {"name": "uptime", "api": SENSOR, "model": "command", "attributes": {"argv": ["uptime"]}},
        {"name": "pc", "api": SENSOR, "model": "host"},
    ]
    document = decode_document(json.dumps({"components": entries}).encode()).document
    assert document is not None
    refused = plan(document, Registry(BUILTIN), trusted=False).resources
    assert "-untrusted-env" in str(refused[f"{SENSOR}/uptime"].fault)
    assert refused[f"{SENSOR}/pc"].fault is None
    assert plan(document, Registry(BUILTIN)).resources[f"{SENSOR}/uptime"].fault is None


class Away:
    """One remote that has not been reached yet."""

    def absent(self, text: str) -> str:
        return "the remote pi is not connected" if text.startswith("pi:") else ""

    def starting(self) -> list[str]:
        return ["internal/remote/pi"]


def test_a_missing_name_waits_for_remotes_that_may_have_it() -> None:
    entries = [{"name": "m", "api": MOTOR, "model": "test", "depends_on": ["pi:left"]}]
    document = decode_document(json.dumps({"components": entries}).encode()).document
    assert document is not None
    expected = plan(document, registry(), remotes=Away()).resources[f"{MOTOR}/m"]
    assert expected.requires == {"internal/remote/pi"}
    assert "the remote pi is not connected" in str(expected.fault)
    assert plan(document, registry()).resources[f"{MOTOR}/m"].requires == frozenset()


def test_a_resource_of_a_remote_may_be_needed_by_any_of_its_names() -> None:
    left = PlannedResource(ResourceName.parse(f"{MOTOR}/pi:left"), "remotes.0", "remote", 1)
    for text in ("left", "pi:left", f"{MOTOR}/left", f"{MOTOR}/pi:left"):
        entries = [{"name": "m", "api": MOTOR, "model": "test", "depends_on": [text]}]
        document = decode_document(json.dumps({"components": entries}).encode()).document
        assert document is not None
        result = plan(document, registry(), others=[left])
        assert result.resources[f"{MOTOR}/m"].requires == {f"{MOTOR}/pi:left"}
        assert result.aliases == {f"{MOTOR}/left": (f"{MOTOR}/pi:left",)}

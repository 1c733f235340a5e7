"""A driver's attributes: typed, with every mistake reported by name."""

from __future__ import annotations

import enum
import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.attributes import decode_attributes, json_schema
from schema.durations import Duration
from schema.errors import ConfigError, ConfigErrors


class Pins(msgspec.Struct, kw_only=True, frozen=True):
    a: str
    b: str | None = None


class Large(msgspec.Struct, kw_only=True, frozen=True):
    size: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] = 0


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


class Config(msgspec.Struct, kw_only=True, frozen=True):
    board: str
    pins: Pins
    max_rpm: float = 100.0
    ticks: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    flip: bool = False
    left: tuple[str, ...] = ()
    pair: tuple[int, str] | None = None
    limits: dict[str, float] = msgspec.field(default_factory=dict)
    mode: Mode = Mode.FAST
    parity: Literal["none", "odd", "even"] = "none"
    timeout: Duration = 1.0
    baud: int | Literal["auto"] = "auto"
    inner: list[Pins] = msgspec.field(default_factory=list)
    renamed: int = msgspec.field(default=0, name="reNamed")
    password: str = ""

    def __post_init__(self) -> None:
        if self.max_rpm == 13:
            raise ValueError("13 brings bad luck")
        if self.max_rpm == 14:
            raise ConfigError("max_rpm", "is worse", remedy="write 15")


GOOD: dict[str, Any] = {"board": "pi", "pins": {"a": "11"}}


def read(**more: Any) -> Config:
    config, warnings = decode_attributes(Config, {**GOOD, **more}, path="components.0.attributes")
    assert warnings == ()
    return config


def mistakes(raw: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        decode_attributes(Config, raw, path="at")
    error = caught.value
    return [str(problem) for problem in (error.problems if isinstance(error, ConfigErrors) else [error])]


def test_values_arrive_with_their_types() -> None:
    config = read(
        max_rpm=60, ticks=5.0, flip=True, left=["x"], pair=[1, "b"], limits={"a": 1}, mode="slow", parity="odd",
        timeout="1m30s", baud=9600, inner=[{"a": "1", "b": None}], reNamed=3,
    )  # fmt: skip
    assert config == Config(
        board="pi", pins=Pins(a="11"), max_rpm=60.0, ticks=5, flip=True, left=("x",), pair=(1, "b"), limits={"a": 1.0},
        mode=Mode.SLOW, parity="odd", timeout=90.0, baud=9600, inner=[Pins(a="1")], renamed=3,
    )  # fmt: skip
    assert type(config.max_rpm) is float
    assert type(config.ticks) is int
    assert type(config.limits["a"]) is float


@pytest.mark.parametrize(
    ("more", "mistake"),
    [
        ({"max_rpm": "60"}, "at.max_rpm: must be a number, not \"60\": write 60 without quotes"),
        ({"max_rpm": "fast"}, "at.max_rpm: must be a number, not \"fast\": write a number"),
        ({"max_rpm": True}, "at.max_rpm: must be a number, not true: write a number"),
        ({"max_rpm": None}, "at.max_rpm: must be a number, not null: write a number or remove the key"),
        ({"max_rpm": 13}, "at: 13 brings bad luck"),
        ({"max_rpm": 14}, "at.max_rpm: is worse: write 15"),
        ({"ticks": 1.5}, "at.ticks: must be a whole number, not 1.5: write a whole number"),
        ({"ticks": 0}, "at.ticks: 0 is out of range: write a whole number from 1 to 1000"),
        ({"ticks": 1001}, "at.ticks: 1001 is out of range: write a whole number from 1 to 1000"),
        ({"flip": "true"}, "at.flip: must be true or false, not \"true\": write true without quotes"),
        ({"flip": 1}, "at.flip: must be true or false, not 1: write true or false"),
        ({"board": 7}, 'at.board: must be a string, not 7: write "7"'),
        ({"left": "x"}, "at.left: must be a list, not \"x\": write a list"),
        ({"left": ["x", 1]}, 'at.left.1: must be a string, not 1: write "1"'),
        ({"pair": [1]}, "at.pair: must be a list of 2, not [1]: write a list of 2"),
        ({"limits": {"a.b": "x"}}, "at.limits.a.b: must be a number, not \"x\": write a number"),
        ({"limits": [1]}, "at.limits: must be an object, not [1]: write an object"),
        ({"mode": "fats"}, "at.mode: 'fats' is not a valid value: did you mean 'fast'?"),
        ({"parity": "od"}, "at.parity: 'od' is not a valid value: did you mean 'odd'?"),
        ({"parity": 1}, "at.parity: 1 is not a valid value: write one of 'even', 'none', 'odd'"),
        ({"timeout": "10"}, "at.timeout: '10' is not a duration: write for example \"10s\" or \"1h30m\""),
        ({"timeout": []}, 'at.timeout: must be a duration, not []: write for example "10s" or "1h30m"'),
        ({"pins": {}}, "at.pins: 'a' is missing: add 'a': a string"),
        ({"pins": {"a": 3}}, 'at.pins.a: must be a string, not 3: write "3"'),
        ({"inner": [{"a": "1"}, {"a": 1}]}, 'at.inner.1.a: must be a string, not 1: write "1"'),
        ({"password": 1234}, 'at.password: must be a string, not a whole number: write it in double quotes'),
    ],
)  # fmt: skip
def test_a_mistake_names_path_value_and_remedy(more: dict[str, Any], mistake: str) -> None:
    assert mistakes({**GOOD, **more}) == [mistake]


def test_a_union_refuses_what_none_of_its_members_takes() -> None:
    (mistake,) = mistakes({**GOOD, "baud": []})
    assert mistake.startswith("at.baud: must be a whole number or one of 'auto', not []")


def test_all_mistakes_come_together_in_order() -> None:
    result = mistakes({"pins": {"a": 1, "b": 2}, "max_rpm": "x", "flip": None})
    assert [text.partition(": ")[0] for text in result] == ["at", "at.pins.a", "at.pins.b", "at.max_rpm", "at.flip"]
    with pytest.raises(ConfigErrors) as caught:
        decode_attributes(Config, {}, path="at")
    assert str(caught.value).count("\n") == 1
    assert caught.value.path == "at"


def test_unknown_keys_are_warnings_at_every_depth() -> None:
    config, warnings = decode_attributes(
        Config, {"board": "b", "pins": {"a": "1", "c": 2}, "maxrpm": 7, "zzz": 1}, path="at"
    )
    assert config.max_rpm == 100
    texts = [str(warning) for warning in warnings]
    assert texts[0].startswith("at.pins.c: unknown key")
    assert texts[1] == "at.maxrpm: unknown key: did you mean 'max_rpm'?"
    assert texts[2] == "at.zzz: unknown key"


def test_a_bare_number_is_nanoseconds_and_a_small_one_hardly_meant() -> None:
    config, warnings = decode_attributes(Config, {**GOOD, "timeout": 2_000_000_000}, path="at")
    assert (config.timeout, warnings) == (2.0, ())
    config, warnings = decode_attributes(Config, {**GOOD, "timeout": 10}, path="at")
    assert config.timeout == pytest.approx(1e-8)
    assert str(warnings[0]) == 'at.timeout: 10 means 10 nanoseconds: write a unit, such as "10s"'
    for meant in (0, 1_000_000, -1_000_000):
        assert decode_attributes(Config, {**GOOD, "timeout": meant}, path="at")[1] == ()


def test_json_schema() -> None:
    schema = json_schema(Config)
    assert schema is not None
    assert json.loads(json.dumps(schema)) == schema
    properties = schema["$defs"]["Config"]["properties"]
    assert properties["ticks"] == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1}
    assert schema["$defs"]["Config"]["required"] == ["board", "pins"]

    class Empty(msgspec.Struct):
        pass

    assert json_schema(Empty) is None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([f.encode_name for f in msgspec.structs.fields(Config)]), values))
def test_whatever_is_accepted_msgspec_accepts_too_and_nothing_else_happens(raw: dict[str, Any]) -> None:
    try:
        config, _ = decode_attributes(Config, {**GOOD, **raw}, path="at")
    except ConfigError as error:
        refused = error
    else:
        assert msgspec.convert(msgspec.to_builtins(config), Config) == config
        return
    assert refused.path.startswith("at")
    assert refused.reason


@pytest.mark.parametrize("ticks", [1, 1000])
def test_bounds_are_allowed(ticks: int) -> None:
    config, _ = decode_attributes(Config, {**GOOD, "ticks": ticks}, path="at")
    assert config.ticks == ticks


def test_large_bounds_are_shown_in_full() -> None:
    with pytest.raises(ConfigError) as caught:
        decode_attributes(Large, {"size": -1}, path="at")
    assert str(caught.value) == "at.size: -1 is out of range: write a whole number from 0 to 4294967295"


@pytest.mark.parametrize("key", ["ticks", "max_rpm"])
def test_a_number_beyond_floats_is_an_error(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        decode_attributes(Config, {"board": "b", "pins": {"a": "1"}, key: 10**400}, path="at")
    assert (caught.value.path, caught.value.remedy) == (f"at.{key}", "write a finite number")

"""Kinematics files: all forms mean the same arm, and broken ones are errors with a path and a reason."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from engine.components.motion.kinematics import Kinematics, KinematicsFormat, MimicJoint
from engine.geometry.chain import forward_kinematics
from engine.geometry.sva import Joint, Link, kinematics
from engine.kinematics import arms, dh
from engine.kinematics.formats import MAX_JOINTS, chain_of, read_chain
from schema.errors import ConfigError, ErrorKind, MachineError

URDF = b"""<robot name="two">
 <link name="base"><collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision></link>
 <joint name="lift" type="prismatic"><parent link="base"/><child link="column"/><origin xyz="0 0 0.1"/>
  <axis xyz="0 0 1"/><limit lower="0" upper="0.5" velocity="0.2" effort="1"/></joint>
 <link name="column">
  <collision><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.02" length="0.2"/></geometry></collision>
  <collision><geometry><cylinder radius="0.1" length="0.1"/></geometry></collision>
  <collision><geometry><sphere radius="0.05"/></geometry></collision></link>
 <joint name="turn" type="revolute"><parent link="column"/><child link="hand"/>
  <origin xyz="0 0 0.2" rpy="0 0 1.5707963"/>
  <axis xyz="0 0 1"/><limit lower="-1" upper="2" velocity="3" effort="1"/></joint>
 <link name="hand"/>
 <joint name="tip" type="fixed"><parent link="hand"/><child link="tool"/><origin xyz="0.1 0 0"/></joint>
 <link name="tool"/>
 <joint name="side" type="fixed"><parent link="column"/><child link="camera"/></joint>
 <link name="camera"/>
</robot>"""

DH: dict[str, Any] = {
    "name": "ur5e",
    "kinematic_param_type": "DH",
    "dhParams": [
        {"id": "shoulder", "parent": "world", "a": 0, "d": 162.5, "alpha": 90, "max": 360, "min": -360},
        {"id": "upper", "parent": "shoulder", "a": -425, "d": 0, "alpha": 0, "max": 360, "min": -360},
        {"id": "fore", "parent": "upper", "a": -392.2, "d": 0, "alpha": 0, "max": 180, "min": -180},
        {"id": "w1", "parent": "fore", "a": 0, "d": 133.3, "alpha": 90, "max": 360, "min": -360},
        {"id": "w2", "parent": "w1", "a": 0, "d": 99.7, "alpha": -90, "max": 360, "min": -360},
        {
            "id": "w3",
            "parent": "w2",
            "a": 0,
            "d": 99.6,
            "alpha": 0,
            "max": 360,
            "min": -360,
            "geometry": {"type": "sphere", "r": 40},
        },
    ],
}


def test_parameters_are_read_in_the_order_of_the_chain() -> None:
    shuffled = {**DH, "dhParams": DH["dhParams"][::-1]}
    chain = read_chain(json.dumps(shuffled).encode(), "p")
    assert [joint.id for joint in chain.joints] == ["shoulder_j", "upper_j", "fore_j", "w1_j", "w2_j", "w3_j"]
    angles = [10.0, -50.0, 70.0, 20.0, 30.0, 40.0]
    expected = forward_kinematics(arms.named("ur5e"), angles)
    assert forward_kinematics(chain, angles).translation == pytest.approx(expected.translation)
    last = chain.parts[-1]
    assert isinstance(last, Link)
    assert last.shapes[0].sphere is not None


def test_urdf_is_read_in_mm_and_degrees() -> None:
    chain = read_chain(URDF, "p")
    lift, turn = chain.joints
    assert (lift.id, lift.low, lift.high, lift.speed) == ("lift", 0.0, 500.0, 200.0)
    assert (turn.low, turn.high) == pytest.approx((math.degrees(-1), math.degrees(2)))
    end = forward_kinematics(chain, [50.0, 0.0])
    assert end.translation == pytest.approx((0.0, 100.0, 350.0), abs=1e-3)
    end = forward_kinematics(chain, [0.0, 90.0])
    assert end.translation == pytest.approx((-100.0, 0.0, 300.0), abs=1e-3)


def test_shapes_of_urdf() -> None:
    chain = read_chain(URDF, "p")
    shapes = [shape for part in chain.parts if isinstance(part, Link) for shape in part.shapes]
    box, capsule, short, sphere = shapes
    assert box.box is not None
    assert (box.box.dims_mm.x, box.box.dims_mm.z) == pytest.approx((100, 300))
    assert capsule.capsule is not None
    assert (capsule.capsule.radius_mm, capsule.capsule.length_mm, capsule.center.z) == pytest.approx((20, 240, 100))
    assert short.box is not None  # a capsule around it would be larger
    assert sphere.sphere is not None


def test_the_kinematics_of_drivers_are_read_in_every_form() -> None:
    chain = arms.named("xarm6")
    described = kinematics(chain)
    angles = [5.0, 10.0, -20.0, 30.0, 40.0, 50.0]
    expected = forward_kinematics(chain, angles).translation
    forms = [
        described,
        Kinematics(KinematicsFormat.SVA, described.kinematics_data),
        Kinematics(model=described.model),
    ]
    for form in forms:
        read = chain_of(form, "arm")
        assert forward_kinematics(read, angles).translation == pytest.approx(expected)
        assert sum(len(part.shapes) for part in read.parts if isinstance(part, Link)) == 8
    speeds = [joint.speed for joint in chain_of(forms[2], "arm").joints]
    assert speeds == pytest.approx([179.9] * 6, abs=0.1)
    assert chain_of(Kinematics(KinematicsFormat.URDF, URDF), "arm").joints[0].id == "lift"


def test_a_shape_of_a_structure_is_at_the_same_place() -> None:
    chain = read_chain(URDF, "p")
    read = chain_of(Kinematics(model=kinematics(chain).model), "arm")
    for a, b in zip(chain.parts, read.parts, strict=True):
        if isinstance(a, Link) and isinstance(b, Link):
            for x, y in zip(a.shapes, b.shapes, strict=True):
                assert (x.center.x, x.center.y, x.center.z) == pytest.approx((y.center.x, y.center.y, y.center.z))


@pytest.mark.parametrize("description", [Kinematics(), Kinematics(KinematicsFormat.URDF, b"<robot/>")])
def test_a_driver_without_kinematics_is_an_error_that_names_it(description: Kinematics) -> None:
    with pytest.raises(MachineError, match="arm1") as caught:
        chain_of(description, "arm1")
    assert caught.value.kind is ErrorKind.UNSUPPORTED


def test_joints_that_follow_others_are_refused() -> None:
    model = kinematics(arms.named("xarm6")).model
    assert model is not None
    object.__setattr__(model.joints[2], "mimic", MimicJoint("joint1"))
    with pytest.raises(MachineError, match="follows another"):
        chain_of(Kinematics(model=model), "arm1")


def entry(**changes: Any) -> bytes:
    first = {**DH["dhParams"][0], **changes}
    return json.dumps({"dhParams": [first, *DH["dhParams"][1:]]}).encode()


def urdf(old: str, new: str) -> bytes:
    changed = URDF.decode().replace(old, new)
    assert changed != URDF.decode()
    return changed.encode()


BROKEN = {
    "empty": b"",
    "no object": b"[1]",
    "number": b"12",
    "nested": b"[" * 100_000,
    "not a number": entry(a=math.nan),
    "infinite": entry(d=math.inf),
    "text": entry(alpha="ninety"),
    "limits": entry(min=10, max=-10),
    "parent": entry(parent="w3"),
    "two parents": entry(id="upper"),
    "geometry": entry(geometry={"type": "box", "x": -1}),
    "large": b" " * (2 * 1024 * 1024) + URDF,
    "truncated": URDF[:200],
    "doctype": b'<!DOCTYPE r [<!ENTITY a "a">]>' + URDF,
    "bomb": b'<!ENTITY a "aaaaaaaaaa">' + URDF,
    "no joints": b"<robot><link name='a'/></robot>",
    "no links": b"<robot/>",
    "unknown link": urdf('<child link="hand"/>', '<child link="nowhere"/>'),
    "own ancestor": urdf('<parent link="base"/><child link="column"/>', '<parent link="tool"/><child link="column"/>'),
    "joint type": urdf('type="revolute"', 'type="floating"'),
    "axis": urdf('<axis xyz="0 0 1"/><limit lower="-1"', '<axis xyz="0 0 0"/><limit lower="-1"'),
    "two numbers": urdf('xyz="0 0 0.2"', 'xyz="0 0"'),
    "nan": urdf('xyz="0 0 0.2"', 'xyz="0 0 nan"'),
    "upside down": urdf('lower="-1" upper="2"', 'lower="2" upper="-1"'),
    "negative size": urdf('radius="0.05"', 'radius="-0.05"'),
    "mimic": urdf('<axis xyz="0 0 1"/><limit lower="-1"', '<mimic joint="lift"/><axis xyz="0 0 1"/><limit lower="-1"'),
    "many joints": json.dumps(
        {
            "dhParams": [
                {"id": f"j{i}", "parent": f"j{i - 1}" if i else "world", "a": 1, "d": 0, "alpha": 0} for i in range(40)
            ]
        }
    ).encode(),
}


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in BROKEN.items()])
def test_a_broken_file_is_an_error_with_its_path(data: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        read_chain(data, "attributes.model-path")
    assert caught.value.path == "attributes.model-path"
    assert len(str(caught.value)) < 400


def test_a_joint_without_limits_turns_freely() -> None:
    chain = read_chain(urdf('type="revolute"', 'type="continuous"'), "p")
    joint = chain.joints[1]
    assert isinstance(joint, Joint)
    assert (joint.low, joint.high) == (-math.inf, math.inf)


def test_a_joint_may_be_fixed_by_equal_limits() -> None:
    joint, _ = dh.row("a", 1.0, 2.0, 90.0, low=5.0, high=5.0)
    assert isinstance(joint, Joint)
    assert (joint.low, joint.high) == (5.0, 5.0)
    with pytest.raises(ValueError, match="min > max"):
        dh.row("a", 1.0, 2.0, 90.0, low=5.1, high=5.0)


def test_limits_of_a_driver_are_those_of_its_joints_and_none_if_it_states_none() -> None:
    model = kinematics(arms.named("xarm6")).model
    assert model is not None
    first, second = model.joints[0], model.joints[1]
    assert first.limits is not None
    object.__setattr__(second, "limits", None)
    joints = chain_of(Kinematics(model=model), "arm").joints
    assert (joints[0].low, joints[0].high) == (first.limits.min, first.limits.max)
    assert (joints[1].low, joints[1].high) == (-math.inf, math.inf)


def test_an_arm_may_have_as_many_joints_as_the_limit_says() -> None:
    rows = [
        {"id": f"j{i}", "parent": f"j{i - 1}" if i else "world", "a": 1, "d": 0, "alpha": 0} for i in range(MAX_JOINTS)
    ]
    assert len(read_chain(json.dumps({"dhParams": rows}).encode(), "p").joints) == MAX_JOINTS


def test_equal_limits_in_urdf_fix_a_joint() -> None:
    joint = read_chain(urdf('lower="-1" upper="2"', 'lower="1" upper="1"'), "p").joints[1]
    assert joint.low == joint.high


def test_the_first_of_two_branches_of_the_same_length_is_the_arm() -> None:
    forked = urdf('name="side" type="fixed"><parent link="column"/>', 'name="side" type="fixed"><parent link="hand"/>')
    assert [part.id for part in read_chain(forked, "p").parts if isinstance(part, Link)][-1] == "tool"

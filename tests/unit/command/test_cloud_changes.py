"""`machine cloud config` lists a change with fragments and triggers by name, mistakes by path, and without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from cloud.editing.review import review
from command.cloud.show import changes

ID = "0a1b2c3d"
TRIGGER = {
    "name": "offline",
    "event": {"type": "part_offline"},
    "notifications": [{"type": "webhook", "value": "https://example.com", "secret": "whsec_correct"}],
}


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({"fragments": [{"id": ID, "version": "1"}]}, {"fragments": [{"id": ID, "version": "2"}]},
         [f'~ fragments.{ID}.version: "1" -> "2"']),
        ({}, {"fragments": [{"id": ID, "version": "3"}]}, [f"+ fragments.{ID} (version 3)"]),
        ({}, {"fragments": [ID]}, [f"+ fragments.{ID}"]),
        ({"fragments": [ID, "other"]}, {"fragments": ["other"]}, [f"- fragments.{ID}"]),
        ({"fragments": [{"id": ID}]}, {"fragments": [{"id": ID, "disabled": True}]},
         [f"~ fragments.{ID}.disabled: (none) -> true"]),
        ({"fragments": [{"id": ID, "variables": {"wifi": "correct horse"}}]},
         {"fragments": [{"id": ID, "variables": {"wifi": "battery"}}]},
         [f"~ fragments.{ID}.variables.wifi: changed (hidden)"]),
        ({"fragment_mods": [{"fragment_id": ID, "mods": [{"$set": {"components.m.attributes.rpm": 1}}]}]},
         {"fragment_mods": [{"fragment_id": ID, "mods": [{"$set": {"components.m.attributes.rpm": 2}}]}]},
         [f"~ fragment_mods.{ID}.mods.0.$set.components.m.attributes.rpm: 1 -> 2"]),
        ({}, {"triggers": [TRIGGER]}, ["+ triggers.offline"]),
        ({"triggers": [TRIGGER]}, {"triggers": [{**TRIGGER, "name": "gone"}]},
         ["- triggers.offline", "+ triggers.gone"]),
        ({"triggers": [TRIGGER]}, {"triggers": [{**TRIGGER, "event": {"type": "part_online"}}]},
         ['~ triggers.offline.event.type: "part_offline" -> "part_online"']),
        ({"components": [{"name": "?"}]}, {"components": [{"name": "!"}]}, ['~ components.0.name: "?" -> "!"']),
        ({"network": {"bind_address": "x"}}, {"network": {"bind_address": "x"}, "debug": True},
         ["~ debug: false -> true"]),
        ({"nix": {"password": "correct"}}, {"nix": {"password": "horse"}}, ["~ nix.password: changed (hidden)"]),
    ],
)  # fmt: skip
def test_changes(old: dict[str, Any], new: dict[str, Any], lines: list[str]) -> None:
    result = changes(old, new)
    assert list(result) == lines
    assert "correct" not in str(result)
    assert "correct" not in repr(review(old, new))


def test_a_long_difference_is_cut() -> None:
    old, new = ({"nix": [number + index for index in range(100)]} for number in (0, 1))
    assert len(changes(old, new)) == 41
    assert changes(old, new)[-1] == "(60 further lines)"


def test_the_review_shows_a_fragment_by_its_id() -> None:
    result = review({"fragments": [{"id": ID, "version": "1"}]}, {"fragments": [{"id": ID, "version": "2"}]})
    (group,) = result.groups
    assert (group.sign, group.title, group.lines) == ("~", f"fragments.{ID}", ('version: "1" -> "2"',))

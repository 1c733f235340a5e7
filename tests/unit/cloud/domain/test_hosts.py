from __future__ import annotations

from typing import Final

import pytest

from cloud.domain.machines.hosts import MachineHosts

PART: Final = "0d2f8a3c-91d4-4be0-a3a1-5c6f0e7d8b12"
HOSTS: Final = MachineHosts("machines.example")


@pytest.mark.parametrize("name", ["rover", "Rover Nr. 2", "ü", "a" * 200, "-", "x" * 25 + "-" + "y" * 20])
def test_a_host_name_leads_back_to_its_part(name: str) -> None:
    host = HOSTS.name_of(PART, name)
    label, _, domain = host.partition(".")
    assert domain == "machines.example"
    assert len(label) <= 63
    assert not label.startswith("-")
    assert "--" not in label
    assert HOSTS.part_of(host) == PART
    assert HOSTS.part_of(f"{host.upper()}.:8090") == PART


@pytest.mark.parametrize("text", [PART, f"rover-{PART}", f"{PART}:443"])
def test_an_id_alone_names_a_part(text: str) -> None:
    assert HOSTS.part_of(text) == MachineHosts().part_of(text) == PART


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rover",
        "localhost:8090",
        "127.0.0.1",
        "[::1]:8090",
        "machines.example",
        f"rover-{PART}.machines.example.evil.example",
        f"rover-{PART}.other.example",
        f"a.rover-{PART}.machines.example",
        f"rover{PART}.machines.example",
        f"rover-{PART}0.machines.example",
        f"rover-{PART}\n",
        PART.replace("-", ""),
    ],
)
def test_other_names_name_no_part(text: str) -> None:
    assert HOSTS.part_of(text) is None


def test_without_a_domain_machines_have_no_host_names() -> None:
    assert MachineHosts().name_of(PART, "rover") == ""
    assert MachineHosts().part_of(f"rover-{PART}.machines.example") is None

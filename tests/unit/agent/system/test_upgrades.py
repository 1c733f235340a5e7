import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.system import upgrades
from agent.system.os_release import OsRelease, parse_os_release
from agent.system.upgrades import AptRepository, UpgradePlan, origins_pattern, parse_policy, plan_upgrades
from tests.unit.agent.system import samples

DEBIAN = parse_os_release(samples.DEBIAN_12)
UBUNTU = parse_os_release(samples.UBUNTU_22)
BOTH_TIMERS = {"apt-daily.timer": True, "apt-daily-upgrade.timer": True}


def patterns(plan: UpgradePlan) -> list[str]:
    """Return the entries of the list, as apt reads them."""
    body = plan.files[upgrades.ORIGINS_PATH].partition("Origins-Pattern {\n")[2]
    return re.findall(r'^    "([^"]*)";$', body, re.MULTILINE)


def matches(pattern: str, repository: AptRepository) -> bool:
    """Match as unattended-upgrades documents it."""
    values = {
        "origin": repository.origin,
        "codename": repository.codename,
        "archive": repository.archive,
        "site": repository.site,
    }
    terms = [term.partition("=") for term in pattern.replace("\\,", "%2C").split(",")]
    return all(fnmatch.fnmatchcase(values[key], value.replace("%2C", ",")) for key, _, value in terms)


@pytest.mark.parametrize(
    ("system", "policy", "upgrade_type", "expected"),
    [
        (
            samples.DEBIAN_12,
            samples.POLICY_DEBIAN,
            "all",
            [
                "origin=Debian Backports,codename=bookworm-backports",
                "origin=Debian,codename=bookworm",
                "origin=Debian,codename=bookworm-security",
            ],
        ),
        (samples.DEBIAN_12, samples.POLICY_DEBIAN, "security", ["origin=Debian,codename=bookworm-security"]),
        (
            samples.DEBIAN_12,
            samples.POLICY_RASPBERRY,
            "all",
            ["origin=Debian,codename=bookworm-security", "origin=Raspberry Pi Foundation,codename=bookworm"],
        ),
        (samples.RASPBIAN_11, samples.POLICY_RASPBIAN, "all", ["origin=Raspbian,codename=bullseye"]),
        (
            samples.UBUNTU_22,
            samples.POLICY_UBUNTU,
            "all",
            [
                "origin=Ubuntu,archive=jammy",
                "origin=Ubuntu,archive=jammy-backports",
                "origin=Ubuntu,archive=jammy-security",
                "origin=UbuntuESMApps,archive=jammy-apps-security",
            ],
        ),
        (
            samples.UBUNTU_24,
            samples.POLICY_UBUNTU.replace("jammy", "noble"),
            "security",
            ["origin=Ubuntu,archive=noble-security", "origin=UbuntuESMApps,archive=noble-apps-security"],
        ),
        (
            samples.DEBIAN_13,
            samples.POLICY_CUSTOM,
            "all",
            ["origin=Google\\, Inc.,archive=stable", "site=flat.example.com"],
        ),
    ],
)
def test_patterns(system: str, policy: str, upgrade_type: upgrades.UpgradeType, expected: list[str]) -> None:
    plan = plan_upgrades(upgrade_type, parse_os_release(system), policy)
    assert patterns(plan) == expected
    assert plan.timers == BOTH_TIMERS
    assert plan.packages == ("unattended-upgrades",)
    assert 'APT::Periodic::Unattended-Upgrade "1";' in plan.files[upgrades.PERIODIC_PATH]


def test_the_lists_of_the_distribution_are_replaced_not_its_files() -> None:
    plan = plan_upgrades("all", DEBIAN, samples.POLICY_DEBIAN)
    assert all("/80-machine-agent" in path for path in plan.files)
    lines = plan.files[upgrades.ORIGINS_PATH].splitlines()
    opening = lines.index("Unattended-Upgrade::Origins-Pattern {")
    assert lines[opening - 2 : opening] == [
        "#clear Unattended-Upgrade::Allowed-Origins;",
        "#clear Unattended-Upgrade::Origins-Pattern;",
    ]
    for text in plan.files.values():
        assert text.startswith("// Written by machine-agent")
        assert "To remove this file" in text


def test_an_empty_setting_changes_nothing() -> None:
    assert plan_upgrades("", DEBIAN, samples.POLICY_DEBIAN) == UpgradePlan()


def test_disable_needs_no_repositories_and_no_package() -> None:
    plan = plan_upgrades("disable", UBUNTU, "garbage")
    assert list(plan.files) == [upgrades.PERIODIC_PATH]
    assert 'APT::Periodic::Unattended-Upgrade "0";' in plan.files[upgrades.PERIODIC_PATH]
    assert plan.timers == {"apt-daily-upgrade.timer": False}
    assert plan.packages == ()
    assert plan.problems == ()


@pytest.mark.parametrize("upgrade_type", ["all", "security", "disable"])
@pytest.mark.parametrize(("text", "name"), [(samples.FEDORA, "Fedora Linux 41"), ("", "this system")])
def test_another_distribution_is_a_problem(text: str, name: str, upgrade_type: upgrades.UpgradeType) -> None:
    plan = plan_upgrades(upgrade_type, parse_os_release(text), samples.POLICY_DEBIAN)
    assert name in str(plan.problems[0])
    assert "use Debian, Raspberry Pi OS or Ubuntu" in plan.problems[0].remedy
    assert not plan.files
    assert not plan.timers


@pytest.mark.parametrize(
    ("upgrade_type", "policy", "remedy"),
    [
        ("security", samples.POLICY_RASPBIAN, "or use 'all'"),
        ("all", "Package files:\nPinned packages:\n", "apt-get update"),
    ],
)
def test_an_empty_list_would_stop_all_upgrades(upgrade_type: upgrades.UpgradeType, policy: str, remedy: str) -> None:
    plan = plan_upgrades(upgrade_type, DEBIAN, policy)
    assert remedy in plan.problems[0].remedy
    assert not plan.files
    assert not plan.timers


def test_a_repository_without_name_and_host_is_reported_and_left_out() -> None:
    plan = plan_upgrades("all", DEBIAN, samples.POLICY_CUSTOM)
    assert len(plan.problems) == 1
    assert "is not upgraded" in str(plan.problems[0])


def test_repositories_that_apt_does_not_upgrade_from_are_left_out() -> None:
    origins = {repository.origin for repository in parse_policy(samples.POLICY_CUSTOM)}
    assert not origins & {"Experimental", "Blocked"}
    assert all(repository.archive != "now" for repository in parse_policy(samples.POLICY_DEBIAN))


@pytest.mark.parametrize(
    ("origin", "pattern"),
    [
        ("a,b", "origin=a\\,b,codename=n"),
        ("st*r", "origin=st[*]r,codename=n"),
        ("what?", "origin=what[?],codename=n"),
        ("[x]", "origin=[[]x],codename=n"),
        ('"; DPkg::Pre-Invoke { "x', "origin=?; DPkg::Pre-Invoke { ?x,codename=n,site=h.example.com"),
        ("a\\b", "origin=a?b,codename=n,site=h.example.com"),
        ("${distro_id}=x", "origin=?{distro_id}?x,codename=n,site=h.example.com"),
        ("a%2Cb", "origin=a?2Cb,codename=n,site=h.example.com"),
        ("é", "origin=é,codename=n"),
        ("", "codename=n,site=h.example.com"),
    ],
)
def test_escaping(origin: str, pattern: str) -> None:
    repository = AptRepository(origin, "n", "stable", "h.example.com")
    assert origins_pattern(repository) == pattern
    assert matches(pattern, repository)


NAMES = st.text(max_size=8) | st.text(alphabet='ab,"\\=$%*?[]!{};/\n', max_size=8)


@given(st.builds(AptRepository, NAMES, NAMES, NAMES, NAMES), st.builds(AptRepository, NAMES, NAMES, NAMES, NAMES))
def test_a_pattern_matches_its_repository_and_cannot_leave_its_text(
    repository: AptRepository, other: AptRepository
) -> None:
    pattern = origins_pattern(repository)
    if pattern is None:
        return
    assert matches(pattern, repository)
    assert '"' not in pattern
    assert "\n" not in pattern
    assert "$" not in pattern
    assert re.search(r"\\(?!,)", pattern) is None
    exact = "?" not in pattern.replace("[?]", "")
    if exact and (other.origin, other.suite) != (repository.origin, repository.suite) and "site" not in pattern:
        assert other.origin != repository.origin or not matches(pattern, other) or other.suite[0] != repository.suite[0]


POLICY_LINES = st.lists(
    st.sampled_from(samples.POLICY_CUSTOM.split("\n") + samples.POLICY_UBUNTU.split("\n")) | st.text(max_size=40)
)


@given(
    POLICY_LINES, st.sampled_from(["all", "security", "disable", ""]), st.sampled_from(["debian", "ubuntu", "x", ""])
)
def test_unusual_output_never_raises(lines: list[str], upgrade_type: upgrades.UpgradeType, distribution: str) -> None:
    plan = plan_upgrades(upgrade_type, OsRelease(id=distribution), "\n".join(lines))
    for text in plan.files.values():
        text.encode()
        for line in text.splitlines():
            assert line.startswith(
                ("//", "#clear Unattended-Upgrade::", "APT::Periodic::", "Unattended-", "    ", "};")
            )

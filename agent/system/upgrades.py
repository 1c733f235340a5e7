"""Unattended upgrades of Debian, Raspberry Pi OS and Ubuntu, as drop-in files of apt. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from agent.system.notice import notice
from agent.system.os_release import OsRelease
from schema import ConfigError

UpgradeType = Literal["", "all", "security", "disable"]

# apt reads the folder in order: after the distribution's 20auto-upgrades and 50unattended-upgrades.
PERIODIC_PATH: Final = "etc/apt/apt.conf.d/80-machine-agent-periodic.conf"
ORIGINS_PATH: Final = "etc/apt/apt.conf.d/80-machine-agent-origins.conf"
PACKAGE: Final = "unattended-upgrades"
SETTING: Final = "agent.system_configuration.os_auto_upgrade_type"

DISTRIBUTIONS: Final = ("debian", "raspbian", "ubuntu")
_LISTS_TIMER: Final = "apt-daily.timer"
_UPGRADE_TIMER: Final = "apt-daily-upgrade.timer"
_LOWEST_PRIORITY: Final = 100  # a priority below this means that apt never upgrades from the repository by itself

_SOURCE: Final = re.compile(r"\s*(-?\d{1,9})\s+\S.*")
_RELEASE: Final = re.compile(r"\s+release\s(.*)")
_ORIGIN: Final = re.compile(r"\s+origin\s(.*)")
_NEXT_FIELD: Final = re.compile(r",(?=[a-z]=)")


@dataclass(frozen=True)
class AptRepository:
    """A repository of which apt has a package list. Fields that its metadata lacks are empty."""

    origin: str = ""
    codename: str = ""
    archive: str = ""
    site: str = ""  # host name

    @property
    def suite(self) -> tuple[str, str]:
        """The field that distinguishes the suites of this origin, and its value.

        All suites of an Ubuntu release have its codename; their archive tells them apart. The archive of a Debian
        release changes from stable to oldstable; its codename stays.
        """
        if self.archive.startswith(self.codename):
            return "archive", self.archive
        return "codename", self.codename

    @property
    def is_security(self) -> bool:
        """Whether this repository has only security upgrades, by its codename or archive."""
        return "security" in self.suite[1].lower()


@dataclass(frozen=True)
class UpgradePlan:
    """What a setting of unattended upgrades requires. Without files and timers, nothing changes."""

    files: Mapping[str, str] = field(default_factory=dict)  # text by path
    timers: Mapping[str, bool] = field(default_factory=dict)  # systemd timers: whether they are enabled
    packages: tuple[str, ...] = ()  # must be installed
    problems: tuple[ConfigError, ...] = ()


def plan_upgrades(upgrade_type: UpgradeType, system: OsRelease, policy: str) -> UpgradePlan:
    """Plan unattended upgrades for a distribution whose `apt-cache policy` prints `policy`."""
    if upgrade_type == "":
        return UpgradePlan()
    if system.id not in DISTRIBUTIONS:
        return _rejected(
            f"unattended upgrades cannot be configured on {system.name or system.id or 'this system'!r}",
            "use Debian, Raspberry Pi OS or Ubuntu, or leave os_auto_upgrade_type empty",
        )
    if upgrade_type == "disable":
        return UpgradePlan({PERIODIC_PATH: _periodic_text(False)}, {_UPGRADE_TIMER: False})
    repositories = parse_policy(policy)
    if upgrade_type == "security":
        repositories = [repository for repository in repositories if repository.is_security]
    patterns = {repository: origins_pattern(repository) for repository in repositories}
    usable = sorted({pattern for pattern in patterns.values() if pattern is not None})
    if not usable:
        kind = "security repository" if upgrade_type == "security" else "repository"
        remedy = "run `apt-get update`, then `apt-cache policy`"
        return _rejected(
            f"apt has no {kind} that unattended upgrades can use",
            remedy + (", or use 'all'" if upgrade_type == "security" else ""),
        )
    return UpgradePlan(
        {PERIODIC_PATH: _periodic_text(True), ORIGINS_PATH: _origins_text(usable)},
        {_LISTS_TIMER: True, _UPGRADE_TIMER: True},
        (PACKAGE,),
        tuple(
            ConfigError(
                SETTING,
                f"the repository {repository.origin or repository.suite[1] or '(without a name)'} is not upgraded: "
                "it has no host, and its metadata does not identify it",
                remedy="give its Release file an Origin and a Codename of plain letters and digits",
            )
            for repository, pattern in patterns.items()
            if pattern is None
        ),
    )


def parse_policy(text: str) -> list[AptRepository]:
    """Parse the output of `apt-cache policy`: each repository once, in order.

    Leaves out installed packages and repositories from which apt does not upgrade by itself. Skips unusual lines.
    """
    repositories: dict[AptRepository, None] = {}
    priority = None
    fields: dict[str, str] = {}
    site = ""
    for line in (*text.split("\n"), ""):
        source = _SOURCE.fullmatch(line)
        if source is not None or not line.startswith(" "):  # the end of the former repository
            if priority is not None and priority >= _LOWEST_PRIORITY and fields and fields.get("a") != "now":
                repositories[AptRepository(fields.get("o", ""), fields.get("n", ""), fields.get("a", ""), site)] = None
            priority, fields, site = int(source[1]) if source is not None else None, {}, ""
        elif (release := _RELEASE.fullmatch(line)) is not None:
            # A value may contain commas: only one that is followed by a key begins a field.
            parts = (part.partition("=") for part in _NEXT_FIELD.split(release[1]))
            fields = {key.strip(): value.strip() for key, _, value in parts}
        elif (origin := _ORIGIN.fullmatch(line)) is not None:  # missing for a repository in a folder
            site = origin[1].strip()
    return list(repositories)


def origins_pattern(repository: AptRepository) -> str | None:
    """Return the entry of Unattended-Upgrade::Origins-Pattern that matches a repository and as few others as possible.

    A repository whose metadata is missing or cannot be written exactly is also identified by its host. None if it has
    no host either.
    """
    key, suite = repository.suite
    names = {"origin": repository.origin, key: suite}
    terms = {name: _escaped(value) for name, value in names.items() if value}
    if len(terms) < len(names) or any("?" in term.replace("[?]", "") for term in terms.values()):
        if not repository.site or "?" in _escaped(repository.site):
            return None
        terms["site"] = _escaped(repository.site)
    return ",".join(f"{name}={term}" for name, term in terms.items())


def _escaped(value: str) -> str:
    """Escape a value for an Origins-Pattern in apt.conf: it becomes an fnmatch pattern that matches only `value`.

    Some characters cannot be written: apt.conf ends a text at a quote; unattended-upgrades splits at `=`, expands `$`
    and decodes `%2C`. Each of them becomes `?`, which matches any character.
    """
    return "".join(map(_escaped_character, value))


def _escaped_character(character: str) -> str:
    if character == ",":
        return "\\,"
    if character in "*?[":
        return f"[{character}]"
    if character in '"\\=$%' or not character.isprintable():
        return "?"
    return character


def _periodic_text(enabled: bool) -> str:
    return (
        notice("//", "set os_auto_upgrade_type to an empty text")
        + 'APT::Periodic::Update-Package-Lists "1";\n'
        + f'APT::Periodic::Unattended-Upgrade "{int(enabled)}";\n'
    )


def _origins_text(patterns: Sequence[str]) -> str:
    return (
        notice("//", "set os_auto_upgrade_type to an empty text")
        + "#clear Unattended-Upgrade::Allowed-Origins;\n"
        + "#clear Unattended-Upgrade::Origins-Pattern;\n"
        + "Unattended-Upgrade::Origins-Pattern {\n"
        + "".join(f'    "{pattern}";\n' for pattern in patterns)
        + "};\n"
    )


def _rejected(reason: str, remedy: str) -> UpgradePlan:
    return UpgradePlan(problems=(ConfigError(SETTING, reason, remedy=remedy),))

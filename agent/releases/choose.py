"""Which release of a program is to be installed: the settings and the cloud's answer against what is signed. Pure.

| what is asked for | with a pinned root | without one |
|---|---|---|
| the cloud names a version | the signed release with its hash | the file with its hash |
| the cloud names a URL | the file there, if the organization signed it | the file there |
| no answer, the device's own setting is a version | the signed release | a problem |
| no answer, the device's own setting is a URL | the file there | the file there |
| no answer, and a channel | nothing | nothing |

A URL in the defaults file of the device is the consent to a file that is not signed: only root can write this file. The
cloud cannot give this consent, because it may be taken over. `http://` needs the consent `allow_http` of the defaults
file, unless the hash is known from another source.

Older versions are possible, because a person may select one: what the newest metadata lists may be installed. A release
that is withdrawn is not listed.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from agent.releases.signed import Signed
from agent.update.desired import CUSTOM, DesiredVersion
from agent.update.record import Release, ReleaseOffer, UpdateRecord
from schema import ConfigError, SemanticVersion, VersionForm, version_form
from schema.agent import shown_url
from uplink.releases import Header, normal_platform

_URLS: Final = (VersionForm.HTTPS, VersionForm.FILE, VersionForm.HTTP)


class ReleaseQuestion(NamedTuple):
    """What decides about one program of a machine."""

    setting: str  # `version_control` of the device: stable, dev, a version or a URL
    answer: DesiredVersion | None  # of the cloud; None if it names no release
    signed: tuple[Signed, ...] | None  # the releases in the verified metadata; None without a pinned root
    part: str  # id of the machine part
    platform: str  # such as linux/aarch64
    allow_http: bool = False  # consent of the device
    explicit: bool = False  # a person asks for this now, even if the release is in quarantine
    chosen: bool = False  # a person has chosen `setting` with `machine agent update`


class Read(NamedTuple):
    """Get the file at `url`, and pass its hash, size and header to `choose_file`."""

    url: str
    must_be_signed: bool


class Keep(NamedTuple):
    """Offer nothing; `reason` says why. `installed`: what is asked for is installed already."""

    reason: str
    installed: bool = False


class Refuse(NamedTuple):
    """Offer nothing, because what is asked for is not possible."""

    problem: ConfigError


Choice: TypeAlias = ReleaseOffer | Read | Keep | Refuse


def choose(record: UpdateRecord, asked: ReleaseQuestion) -> Choice:
    """Return which release is to be offered to the record of a program."""
    platform = normal_platform(asked.platform)
    listed = [entry for entry in asked.signed or () if entry.custom.program == record.program]
    usable = [entry for entry in listed if entry.custom.platform == platform]
    answer = asked.answer
    if answer is None:
        return _own(record, asked, usable)
    if answer.version == CUSTOM:
        return _url(record, asked, answer.url, must_be_signed=asked.signed is not None)
    if asked.signed is None:
        return _unsigned(record, asked, answer)
    for entry in usable:
        if entry.sha256 == answer.sha256:
            return _signed(record, asked, entry)
    return _refuse(
        record,
        asked,
        f"the cloud names version {answer.version[:60]}, but the organization signed no such file for {platform}",
        answer.version,
        "publish the version in the signed releases of the organization, or select another one",
    )


def choose_file(
    record: UpdateRecord, asked: ReleaseQuestion, read: Read, header: Header, sha256: str, size: int
) -> ReleaseOffer | Keep | Refuse:
    """Return whether the file that `choose` wanted to be read is offered."""
    platform = normal_platform(asked.platform)
    value = shown_url(read.url)
    if header.program != record.program:
        return _refuse(
            record, asked, f"the file is a release of {header.program}", value, f"name a file of {record.program}"
        )
    if header.platform != platform:
        return _refuse(record, asked, f"the file is for {header.platform}", value, f"name a file for {platform}")
    if read.must_be_signed:
        for entry in asked.signed or ():
            if (entry.sha256, entry.custom.program, entry.custom.platform) == (sha256, record.program, platform):
                return _signed(record, asked, entry)
        return _refuse(
            record,
            asked,
            "the organization has not signed this file, and this machine has a pinned root.json",
            value,
            "publish the file in the signed releases, or write the URL into the defaults file of the device",
        )
    return _take(record, asked, Release(header.version, sha256, size, read.url, platform))


def _own(record: UpdateRecord, asked: ReleaseQuestion, usable: list[Signed]) -> Choice:
    """Return the choice if the cloud names no release."""
    form = version_form(asked.setting)
    if form in _URLS:
        return _url(record, asked, asked.setting, must_be_signed=False)
    if form is not VersionForm.SEMANTIC:
        return Keep("the cloud has no release for this machine")
    if asked.signed is None:
        return _refuse(
            record,
            asked,
            "without a pinned root.json, the agent does not know which file a version is",
            asked.setting,
            "write the URL of the release file, or pin root.json: `machine-agent --install --release-root root.json`",
        )
    for entry in usable:
        if entry.custom.version == asked.setting:
            return _signed(record, asked, entry)
    return _refuse(
        record,
        asked,
        f"there is no such version for {normal_platform(asked.platform)}",
        asked.setting,
        "publish it in the cloud, or select another version",
    )


def _url(record: UpdateRecord, asked: ReleaseQuestion, url: str, *, must_be_signed: bool) -> Read | Refuse:
    form = version_form(url)
    if form not in _URLS:
        return _refuse(record, asked, "is not a URL of a file", shown_url(url), "write an https:// or file:/// URL")
    if form is VersionForm.HTTP and not asked.allow_http:
        return _refuse(
            record,
            asked,
            "anyone on the network path could replace a file from an http:// URL",
            shown_url(url),
            'write an https:// URL, or allow it with "allow_http": true in the defaults file of the device',
        )
    return Read(url, must_be_signed)


def _unsigned(record: UpdateRecord, asked: ReleaseQuestion, answer: DesiredVersion) -> ReleaseOffer | Keep | Refuse:
    """Return the choice for a machine that trusts its cloud."""
    if not answer.sha256:
        return _refuse(
            record,
            asked,
            f"the cloud names version {answer.version[:60]} without its hash, so the file cannot be verified",
            answer.version,
            "upload the version again",
        )
    try:
        SemanticVersion.parse(answer.version)
        release = Release(answer.version, answer.sha256, 0, answer.url, normal_platform(asked.platform))
    except ValueError as error:
        return _refuse(
            record, asked, f"the answer of the cloud is not valid: {error}", answer.version, "update the cloud"
        )
    return _take(record, asked, release)


def _signed(record: UpdateRecord, asked: ReleaseQuestion, entry: Signed) -> ReleaseOffer | Keep | Refuse:
    custom, minimum = entry.custom, entry.custom.minimum
    current = record.slots.current.version
    if minimum and _is_below(current, minimum):
        return _refuse(
            record,
            asked,
            f"version {custom.version} can replace version {minimum} and later, but {current} is installed",
            custom.version,
            f"install version {minimum} first",
        )
    release = Release(custom.version, entry.sha256, entry.size, entry.path(asked.part), custom.platform)
    return _take(record, asked, release)


def _is_below(version: str, minimum: str) -> bool:
    try:
        return SemanticVersion.parse(version) < SemanticVersion.parse(minimum)
    except ValueError:  # a private build without a version: nothing is known about it
        return False


def _take(record: UpdateRecord, asked: ReleaseQuestion, release: Release) -> ReleaseOffer | Keep:
    if release.sha256 == record.slots.current.sha256:
        return Keep(f"version {release.version} is installed", installed=True)
    for entry in record.quarantine:
        if entry.sha256 == release.sha256 and not asked.explicit:
            return Keep(f"version {release.version} is in quarantine: {entry.reason}")
    return ReleaseOffer(release, asked.explicit)


def _refuse(record: UpdateRecord, asked: ReleaseQuestion, reason: str, value: str, remedy: str) -> Refuse:
    program = "agent" if record.program == "machine-agent" else record.program
    root = "defaults" if asked.answer is None else "agent"
    path = f"chosen-versions.{record.program}" if asked.chosen else f"{root}.version_control.{program}"
    return Refuse(ConfigError(path, reason, value=value[:200], remedy=remedy))

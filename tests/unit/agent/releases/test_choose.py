"""Which release is offered: only one that the organization signed if this machine has a pinned root."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent.releases.choose import Choice, Keep, Read, Refuse, ReleaseQuestion, choose, choose_file
from agent.releases.signed import Signed, listing
from agent.update.desired import CUSTOM, DesiredVersion
from agent.update.record import QuarantinedRelease, Release, ReleaseOffer
from tests.unit.agent.update.make import CURRENT, IDLE, NOW
from uplink.releases import Custom, Header

PLATFORM = "linux/aarch64"
URL = "https://files.test/server"


def signed(version: str, digit: str, **fields: Any) -> Signed:
    custom = Custom(**{"program": "machine-server", "version": version, "platform": PLATFORM} | fields)
    return Signed(custom, digit * 64, 1000)


NEW = signed("1.3.0", "a", channels=("stable",))
OLDER = signed("1.1.0", "b")
LATER = signed("2.0.0", "c", minimum="1.3.0")
OTHER = signed("1.3.0", "d", platform="linux/x86_64")
AGENT = signed("1.3.0", "e", program="machine-agent")
ALL = (NEW, OLDER, LATER, OTHER, AGENT)


def asked(
    answer: DesiredVersion | None, *, trusted: bool = True, setting: str = "stable", **fields: Any
) -> ReleaseQuestion:
    return ReleaseQuestion(setting, answer, ALL if trusted else None, "part-1", "linux/arm64", **fields)


def named(entry: Signed) -> DesiredVersion:
    return DesiredVersion(entry.custom.version, "https://cloud.test/link?signature=secret", entry.sha256)


def taken(choice: Choice) -> Release:
    assert isinstance(choice, ReleaseOffer), choice
    return choice.release


def refused(choice: Choice) -> str:
    assert isinstance(choice, Refuse), choice
    assert choice.problem.remedy
    assert "secret" not in f"{choice.problem} {choice.problem.value}"
    return str(choice.problem)


def test_the_signed_release_that_the_cloud_names_is_offered() -> None:
    release = taken(choose(IDLE, asked(named(NEW))))
    path = f"/machine/v1/parts/part-1/releases/targets/machine-server/1.3.0/{'a' * 64}.linux-aarch64"
    assert release == Release("1.3.0", "a" * 64, 1000, path, PLATFORM)


def test_the_signed_version_counts_not_the_version_in_the_answer() -> None:
    assert taken(choose(IDLE, asked(DesiredVersion("9.9.9", URL, NEW.sha256)))).version == "1.3.0"


def test_an_older_version_is_offered_while_it_is_signed() -> None:
    assert taken(choose(IDLE, asked(named(OLDER)))).version == "1.1.0"


@pytest.mark.parametrize("entry", [OTHER, AGENT], ids=["platform", "program"])
def test_a_signed_file_for_something_else_is_refused(entry: Signed) -> None:
    assert "signed no such file for linux/aarch64" in refused(choose(IDLE, asked(named(entry))))


@pytest.mark.parametrize("sha256", ["f" * 64, ""])
def test_a_file_that_is_not_signed_is_refused_with_a_pinned_root(sha256: str) -> None:
    text = refused(choose(IDLE, asked(DesiredVersion("1.3.0", URL, sha256))))
    assert text.startswith("agent.version_control.machine-server: ")


def test_a_release_that_needs_a_later_version_than_the_installed_one_is_refused() -> None:
    assert "install version 1.3.0 first" in refused(choose(IDLE, asked(named(LATER))))
    there = replace(IDLE, slots=replace(IDLE.slots, current=replace(CURRENT, version="1.3.0")))
    assert taken(choose(there, asked(named(LATER)))).version == "2.0.0"


def test_without_a_pinned_root_the_file_with_the_hash_of_the_cloud_is_offered() -> None:
    answer = DesiredVersion("1.3.0", URL, "f" * 64)
    assert taken(choose(IDLE, asked(answer, trusted=False))) == Release("1.3.0", "f" * 64, 0, URL, PLATFORM)


@pytest.mark.parametrize(
    "answer",
    [DesiredVersion("1.3.0", URL), DesiredVersion("1.3.0", URL, "xyz"), DesiredVersion("newest", URL, "f" * 64)],
)
def test_an_answer_that_cannot_be_verified_is_refused(answer: DesiredVersion) -> None:
    refused(choose(IDLE, asked(answer, trusted=False)))


@pytest.mark.parametrize(("trusted", "must"), [(True, True), (False, False)])
def test_a_url_of_the_cloud_must_be_signed_with_a_pinned_root(trusted: bool, must: bool) -> None:
    assert choose(IDLE, asked(DesiredVersion(CUSTOM, URL), trusted=trusted)) == Read(URL, must)


def test_a_url_of_the_device_needs_no_signature() -> None:
    assert choose(IDLE, asked(None, setting="file:///srv/server")) == Read("file:///srv/server", False)


@pytest.mark.parametrize("url", ["ftp://files.test/a", "https://", "http://files.test/a?secret", "file:relative"])
@pytest.mark.parametrize("trusted", [True, False])
def test_an_unsafe_url_is_refused(url: str, trusted: bool) -> None:
    refused(choose(IDLE, asked(DesiredVersion(CUSTOM, url), trusted=trusted)))


def test_the_device_can_allow_plain_http() -> None:
    answer = DesiredVersion(CUSTOM, "http://files.test/a")
    assert choose(IDLE, asked(answer, allow_http=True)) == Read("http://files.test/a", True)


def test_without_an_answer_a_channel_offers_nothing() -> None:
    assert isinstance(choose(IDLE, asked(None)), Keep)


def test_without_an_answer_a_version_of_the_device_is_taken_from_the_signed_ones() -> None:
    assert taken(choose(IDLE, asked(None, setting="1.1.0"))).sha256 == OLDER.sha256
    text = refused(choose(IDLE, asked(None, setting="1.2.9")))
    assert text.startswith("defaults.version_control.machine-server: ")


def test_without_a_pinned_root_a_version_of_the_device_cannot_be_looked_up() -> None:
    text = refused(choose(IDLE, asked(None, setting="1.1.0", trusted=False, chosen=True)))
    assert text.startswith("chosen-versions.machine-server: without a pinned root.json")


def test_the_installed_release_is_not_offered() -> None:
    answer = DesiredVersion(CURRENT.version, URL, CURRENT.sha256)
    assert isinstance(choose(IDLE, asked(answer, trusted=False)), Keep)


def test_a_release_in_quarantine_is_offered_only_if_a_person_asks() -> None:
    record = replace(IDLE, quarantine=(QuarantinedRelease(NEW.sha256, "1.3.0", "it crashed", NOW),))
    kept = choose(record, asked(named(NEW)))
    assert isinstance(kept, Keep)
    assert "it crashed" in kept.reason
    choice = choose(record, asked(named(NEW), explicit=True))
    assert isinstance(choice, ReleaseOffer)
    assert choice.explicit


HEADER = Header("machine-server", "1.3.0", PLATFORM)


def read_file(header: Header, sha256: str, *, must: bool) -> Choice:
    read = Read("https://user:secret@files.test/server?secret", must)
    return choose_file(IDLE, asked(DesiredVersion(CUSTOM, read.url)), read, header, sha256, 70)


def test_a_file_behind_a_url_is_offered_with_its_own_hash_and_version() -> None:
    release = taken(read_file(HEADER, "f" * 64, must=False))
    assert (release.version, release.sha256, release.size) == ("1.3.0", "f" * 64, 70)


def test_a_signed_file_behind_a_url_is_offered_as_the_signed_release() -> None:
    assert taken(read_file(HEADER, NEW.sha256, must=True)).origin.endswith("linux-aarch64")


@pytest.mark.parametrize("sha256", ["f" * 64, AGENT.sha256, OTHER.sha256])
def test_a_file_behind_a_url_that_is_not_signed_is_refused(sha256: str) -> None:
    refused(read_file(HEADER, sha256, must=True))


@pytest.mark.parametrize(
    "header", [Header("machine-agent", "1.3.0", PLATFORM), Header("machine-server", "1.3.0", "linux/x86_64")]
)
def test_a_file_of_another_program_or_platform_is_refused(header: Header) -> None:
    refused(read_file(header, "f" * 64, must=False))


def test_targets_that_are_not_understood_are_skipped() -> None:
    def target(
        path: str, custom: object, digest: str = "a" * 64, length: int = 5
    ) -> tuple[str, dict[str, str], int, Any]:
        return path, {"sha256": digest}, length, custom

    good = {"program": "machine-server", "version": "1.3.0", "platform": PLATFORM}
    path = "machine-server/1.3.0/linux-aarch64"
    result = listing(
        [
            target(path, good),
            target("1", good),
            target(path, good, "A" * 64),
            target(path, good, length=0),
            target("machine-server/1.3.0/linux-riscv64", {**good, "platform": "linux/riscv64"}),
            target(path, None),
            (path, {"sha512": "a" * 64}, 5, good),
        ]
    )
    assert [(entry.custom.path, entry.size) for entry in result.releases] == [(path, 5)]
    assert len(result.skipped) == 6

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.system.os_release import OsRelease, parse_os_release, unquote
from tests.unit.agent.system import samples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (samples.DEBIAN_11, ("debian:11", "bullseye", ())),
        (samples.DEBIAN_12, ("debian:12", "bookworm", ())),
        (samples.DEBIAN_13, ("debian:13", "trixie", ())),
        (samples.RASPBIAN_11, ("raspbian:11", "bullseye", ("debian",))),
        (samples.UBUNTU_22, ("ubuntu:22.04", "jammy", ("debian",))),
        (samples.UBUNTU_24, ("ubuntu:24.04", "noble", ("debian",))),
        (samples.FEDORA, ("fedora:41", "", ())),
        ("ID=arch\nBUILD_ID=rolling\n", ("arch", "", ())),
        ('# ID=no\n\n  ID="Debian"  \nID_LIKE="rhel  centos"\r\n', ("debian", "", ("rhel", "centos"))),
        ("ID=old\nID=new # comment\nVERSION_ID=1", ("new:1", "", ())),
        ('ID=debian\nVERSION_ID="8"\nVERSION="8 (jessie)"\n', ("debian:8", "jessie", ())),
        ("", ("", "", ())),
        ("garbage\n=x\n1=2\nID", ("", "", ())),
    ],
)
def test_distribution(text: str, expected: tuple[str, str, tuple[str, ...]]) -> None:
    release = parse_os_release(text)
    assert (release.platform, release.codename, release.like) == expected


def test_name_for_people() -> None:
    assert parse_os_release(samples.FEDORA).name == "Fedora Linux 41 (Server Edition)"
    assert parse_os_release("NAME=Plain\n").name == "Plain"


@pytest.mark.parametrize(
    ("quoted", "value"),
    [
        ("plain", "plain"),
        ('"two words"', "two words"),
        ("'single \\ \"double\"'", 'single \\ "double"'),
        (r'"\"quoted\" \$5 \`x\` \\ \n"', r'"quoted" $5 `x` \ \n'),
        (r"a\ b", "a b"),
        ('"open', "open"),
        ("end\\", "end"),
        ("value # comment", "value"),
        ("$HOME", "$HOME"),
    ],
)
def test_quotes_and_escapes(quoted: str, value: str) -> None:
    assert unquote(quoted) == value


@given(st.text() | st.text(alphabet="ID=\"'\\#\n $"))
def test_any_text_is_accepted(text: str) -> None:
    assert isinstance(parse_os_release(text), OsRelease)

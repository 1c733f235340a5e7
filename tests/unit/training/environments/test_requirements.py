"""Requirements of a script: which file counts, which lines are accepted, and what the refusals say."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from schema.errors import ErrorKind, MachineError
from training.environments import requirements
from training.environments.requirements import (
    Requirements,
    parse_egg,
    parse_lock,
    parse_metadata,
    parse_project,
    parse_text,
    requirements_of,
)

HASH: Final = "--hash=sha256:" + "a" * 64
FILES: Final = {
    "requirements.lock": f"locked==1 {HASH}\n",
    "requirements.txt": "text\n",
    "pyproject.toml": '[project]\ndependencies = ["project"]\n',
    "PKG-INFO": "Metadata-Version: 2.2\nRequires-Dist: metadata\n\nRequires-Dist: description\n",
    "parts.egg-info/requires.txt": "egg\n",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("first", range(len(FILES)))
def test_the_first_file_counts(tmp_path: Path, first: int) -> None:
    names = list(FILES)[first:]
    folder = write(tmp_path, {name: FILES[name] for name in names})
    line = ("locked==1 " + HASH, "text", "project", "metadata", "egg")[first]
    assert requirements_of(folder) == (Requirements(names[0], (line,), locked=first == 0), "")


def test_files_without_requirements_are_passed_over(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\n[project]\ndynamic = ["dependencies"]\n',
            "PKG-INFO": "Name: parts\n\nRequires-Dist: description\n",
            "parts.egg-info/requires.txt": "egg\n",
        },
    )
    assert requirements_of(folder) == (Requirements("parts.egg-info/requires.txt", ("egg",)), "")


def test_an_empty_file_says_that_there_are_none(tmp_path: Path) -> None:
    assert requirements_of(write(tmp_path, {"requirements.txt": "# none\n", "PKG-INFO": FILES["PKG-INFO"]})) == (
        None,
        "",
    )
    assert requirements_of(tmp_path / "empty") == (None, "")


def test_setup_is_not_run(tmp_path: Path) -> None:
    needs, remark = requirements_of(write(tmp_path, {"setup.py": "raise SystemExit(install_requires=['x'])"}))
    assert needs is None
    assert "setup.py is not run, so its install_requires are not installed: add requirements.txt" in remark
    assert requirements_of(write(tmp_path, {"setup.py": "from setuptools import setup; setup()"})) == (None, "")


def test_requirements_get_their_normal_form() -> None:
    text = (
        "\ufeff# comment\nnumpy >= 2, <3   # why\r\n\n  Pillow[xmp,mic]==11.*\n"
        "tqdm ; python_version < \"4\" and sys_platform == 'linux'\na-b_c.d \\\n  ~= 1.0\n"
    )
    assert parse_text("r", text.lstrip("\ufeff")) == (
        "numpy<3,>=2",
        "Pillow[mic,xmp]==11.*",
        'tqdm; python_version < "4" and sys_platform == "linux"',
        "a-b_c.d~=1.0",
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("-r /etc/passwd", "the option -r is not accepted: write the requirements of that file here"),
        ("--requirement=/etc/passwd", "the option --requirement is not accepted: write the requirements"),
        ("-c versions.txt", "write the versions here"),
        ("--index-url http://evil", "the option --index-url is not accepted: remove it: the operator of the cloud"),
        ("-i http://evil", "the option -i is not accepted"),
        ("--extra-index-url=http://evil", "the option --extra-index-url is not accepted"),
        ("--find-links /", "the operator of the cloud chooses"),
        ("--unknown", "the option --unknown is not accepted: remove it"),
        ("-e .", "put the package's files next to model/"),
        ("numpy --config-settings=a=b", "the option --config-settings is not accepted"),
        (f"numpy==2 {HASH}", "the option --hash is not accepted: call the file requirements.lock"),
        ("file:///etc/passwd", "it is not the requirement of a package: write a name with versions"),
        ("./numpy-2.whl", "it is not the requirement of a package"),
        ("/tmp/numpy-2.whl", "it is not the requirement of a package"),
        ("https://evil/numpy-2.whl", "it is not the requirement of a package"),
        ("git+ssh://git@evil/numpy", "it is not the requirement of a package"),
        ("numpy @ https://evil/numpy-2.whl", "URLs and paths are not accepted"),
        ("numpy @ file:///etc/passwd", "URLs and paths are not accepted"),
        ("numpy@git+ssh://evil/x", "URLs and paths are not accepted"),
        ("${HOME}", "environment variables are not replaced: write the value"),
        ('numpy ; sys_platform == "${API_KEY}"', "environment variables are not replaced"),
        ('numpy ; os_name == "\x07"', "it contains a control character"),
        ("numpy==2 evil", "it is not the requirement of a package"),
        ("numpy==2;extra", "it is not the requirement of a package"),
        ("n\N{CYRILLIC SMALL LETTER U}mpy", "it is not the requirement of a package"),
        ("n" * 1001, "it has 1001 characters: use at most 1000"),
    ],
)
def test_other_lines_are_refused(line: str, reason: str) -> None:
    with pytest.raises(MachineError) as caught:
        parse_text("requirements.txt", f"good\n\n{line}\n")
    assert reason in str(caught.value)
    assert f"requirements.txt, line 3: {ascii(line[:8])[:-1]}" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert caught.value.kind is ErrorKind.PRECONDITION


def test_deep_markers_end_with_a_requirement_or_a_refusal() -> None:
    for depth in range(0, 490, 10):
        try:
            (line,) = parse_text("r", "numpy; " + "(" * depth + "os_name=='x'" + ")" * depth)
        except MachineError:
            continue
        assert line == 'numpy; os_name == "x"'


def test_options_cannot_be_hidden_by_continued_lines() -> None:
    with pytest.raises(MachineError, match=r"line 2: .*the option --index-url is not accepted"):
        parse_text("r", "# comment \\\nnumpy \\\n  --index-url \\\n http://evil\n")


@given(st.text(st.sampled_from("ab19-_.[],<>=!~;@ \"'$#\\\t\n()/:+"), max_size=60))
@example("a;os_name=='$x'")
@example("a@file:///b")
@example("a \\\n--b")
def test_no_line_becomes_anything_but_a_name_with_versions(text: str) -> None:
    try:
        lines = parse_text("r", text)
    except MachineError:
        return
    for line in lines:
        assert Requirement(line).url is None
        assert "$" not in line
        assert "\n" not in line
        assert not line.startswith("-")
        assert " -" not in line.partition(";")[0]
    assert parse_text("r", "\n".join(lines)) == lines


def test_sizes(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="it has more than 500 requirements: name fewer"):
        parse_text("r", "a\n" * 100_000)
    with pytest.raises(MachineError, match="it has more than 2000 requirements"):
        parse_lock("r", f"a==1 {HASH}\n" * 2001)
    with pytest.raises(MachineError, match=r"requirements\.txt: it has 10000000 bytes: use at most 262144"):
        requirements_of(write(tmp_path, {"requirements.txt": "a" * 10_000_000}))
    (tmp_path / "requirements.txt").write_bytes(b"numpy\xff")
    with pytest.raises(MachineError, match="byte 5 is not UTF-8"):
        requirements_of(tmp_path)


def test_the_place_of_a_refusal_in_other_files() -> None:
    with pytest.raises(MachineError, match=r"project\.dependencies\.1: '-r x': the option -r"):
        parse_project("pyproject.toml", '[project]\ndependencies = ["a", "-r x"]')
    with pytest.raises(MachineError, match="not a list of texts"):
        parse_project("pyproject.toml", "[project]\ndependencies = 3")
    with pytest.raises(MachineError, match="it is not TOML"):
        parse_project("pyproject.toml", "[project")
    with pytest.raises(MachineError, match="it is not TOML"):
        parse_project("pyproject.toml", "a = " + "[" * 100_000)
    assert parse_project("pyproject.toml", "project = 3") is None
    with pytest.raises(MachineError, match=r"PKG-INFO, line 2: 'a @ file:///x': URLs"):
        parse_metadata("PKG-INFO", "Name: x\nRequires-Dist: a @ file:///x\n\n")


def test_extras_of_the_script_are_not_required() -> None:
    text = "Requires-Dist: a\nRequires-Dist: b; extra == 'test'\nrequires-dist: c; python_version < '4'\n\n"
    assert parse_metadata("PKG-INFO", text) == ("a", 'c; python_version < "4"')
    assert parse_egg("r", "a\n\n[:python_version<'4']\nc\n\n[test]\nb\n\n[test:os_name=='nt']\nd\n") == (
        "a",
        'c; python_version < "4"',
    )


def test_a_lock() -> None:
    other = "--hash=sha256:" + "b" * 64
    text = f"a==1.2 \\\n    {other} \\\n    {HASH}\n    # via b\nb[x]==2 ; os_name == 'posix' {HASH}\n"
    assert parse_lock("l", text) == (f"a==1.2 {HASH} {other}", f'b[x]==2; os_name == "posix" {HASH}')


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a==1", "it has no hash: make requirements.lock with `uv pip compile --generate-hashes`"),
        (f"a>=1 {HASH}", "it does not name one version"),
        (f"a==1.* {HASH}", "it does not name one version"),
        (f"a {HASH}", "it does not name one version"),
        ("a==1 --hash=md5:d41d8cd98f00b204e9800998ecf8427e", "is not a SHA-256"),
        (f"a==1 {HASH} --index-url=http://evil", "the option --index-url is not accepted"),
        (f"a @ https://evil {HASH}", "URLs and paths"),
        (f"-r other {HASH}", "the option -r"),
    ],
)
def test_a_lock_that_is_refused(line: str, reason: str) -> None:
    with pytest.raises(MachineError) as caught:
        parse_lock("requirements.lock", line)
    assert reason in str(caught.value)


def test_content_of_a_requirements_file() -> None:
    assert Requirements("r", ("a", "b>=1")).text == "a\nb>=1\n"
    assert requirements.parse_text("r", "a\nb>=1\n") == ("a", "b>=1")

"""The archive of a module, and the folder of a new module."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from command.modules.group import module
from command.modules.new import fill, write
from command.modules.run import document_of
from runtime.sdk.packing import members, pack, read_folder
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.unit.runtime.unpacking import prepare

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "module"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    created = tmp_path / "smooth"
    write(created, "smooth", "acme")
    return created


def names(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return tar.getnames()


def test_an_archive_is_what_a_machine_unpacks(folder: Path, tmp_path: Path) -> None:
    meta, count = pack(folder, tmp_path / "out" / "smooth.tar.gz")
    assert meta.module_id == "acme:smooth"
    program = prepare(tmp_path / "out" / "smooth.tar.gz", tmp_path / "packages", "smooth")
    assert program.executable == program.root / "run.sh"
    assert count == len(list(program.root.iterdir()))
    assert (program.root / "smooth.py").read_text() == (folder / "smooth.py").read_text()
    assert program.executable.stat().st_mode & 0o777 == 0o755
    assert (program.root / "smooth.py").stat().st_mode & 0o777 == 0o644


def test_the_same_files_make_the_same_archive(folder: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.tar.gz", tmp_path / "second.tar.gz"
    pack(folder, first)
    for path in sorted(folder.iterdir(), reverse=True):
        path.touch()
    pack(folder, second)
    assert first.read_bytes() == second.read_bytes()
    (folder / "smooth.py").write_text("# another\n")
    pack(folder, second)
    assert first.read_bytes() != second.read_bytes()


def test_files_of_one_computer_are_left_out(folder: Path) -> None:
    for name in (".git/config", ".venv/bin/python", "__pycache__/a.pyc", "dist/old.tar.gz", "artifacts/log", "a.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "data").mkdir()
    (folder / "data" / "table.csv").write_text("1")
    results = [str(member) for member in members(folder)]
    assert results == sorted([*fill("smooth", "acme"), "data/table.csv"], key=lambda item: ("/" in item, item))[1:]
    assert "test_smooth.py" not in [str(element) for element in members(folder, ["test_*"])]


def test_links_stay_inside(folder: Path, tmp_path: Path) -> None:
    (folder / "again.py").symlink_to("smooth.py")
    (folder / "lib").mkdir()
    (folder / "lib" / "a").write_text("a")
    (folder / "link").symlink_to("lib")
    pack(folder, tmp_path / "a.tar.gz")
    assert {"again.py", "link", "lib/a"} <= set(names(tmp_path / "a.tar.gz"))
    prepare(tmp_path / "a.tar.gz", tmp_path / "packages", "smooth")
    (folder / "out").symlink_to("../elsewhere")
    with pytest.raises(MachineError, match="out is a link that leads out of the module"):
        pack(folder, tmp_path / "b.tar.gz")
    assert not (tmp_path / "b.tar.gz").exists()
    assert not (tmp_path / "b.tar.gz.part").exists()


def test_programs_may_not_be_left_out(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"entrypoint: run\.sh is excluded from the archive"):
        pack(folder, tmp_path / "a.tar.gz", ["*.sh"])


def test_a_folder_that_is_not_a_module(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="`machine module new NAME` creates one") as caught:
        read_folder(tmp_path)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    (folder / "run.sh").chmod(0o644)
    with pytest.raises(ConfigError, match=r"meta\.json: entrypoint: run\.sh is not executable"):
        read_folder(folder)
    (folder / "meta.json").write_text(json.dumps({"module_id": 5, "build": {"arch": [1]}}))
    with pytest.raises(ConfigError) as many:
        read_folder(folder)
    assert len(str(many.value).splitlines()) >= 3


def test_an_archive_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot be written"):
        pack(folder, tmp_path / "file" / "a.tar.gz")


# ---- a new one


def test_the_example_is_what_new_writes() -> None:
    for name, text in fill("smooth", "acme").items():
        assert (EXAMPLE / name).read_text() == text, f"regenerate examples/module: {name} differs"
    ignored = {".pytest_cache", "artifacts", "dist", "__pycache__"}
    assert {path.name for path in EXAMPLE.iterdir()} - ignored == set(fill("smooth", "acme"))


@pytest.mark.parametrize("name", ["a", "rover-arm", "Rover_Arm2", "x" * 60])
def test_a_driver_is_under_sixty_lines_whatever_its_name(name: str) -> None:
    files = fill(name, "acme-1")
    (driver,) = [text for file, text in files.items() if file.endswith(".py") and not file.startswith("test_")]
    assert len(driver.splitlines()) < 60
    for file, text in files.items():
        assert "${" not in text.replace("${MACHINE_PYTHON", ""), file
        if file.endswith(".py"):
            compile(text, file, "exec")
        if file.endswith(".json"):
            json.loads(text)


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("", "a"),
        ("2a", "a"),
        ("a b", "a"),
        ("a--b", "a"),
        ("-a", "a"),
        ("runtime", "a"),
        ("a", ""),
        ("a", "a:b"),
        ("x" * 61, "a"),
    ],
)
def test_names_that_cannot_be(name: str, namespace: str, tmp_path: Path) -> None:
    with pytest.raises(MachineError) as caught:
        write(tmp_path / "new", name, namespace)
    assert caught.value.kind is ErrorKind.INVALID
    assert not (tmp_path / "new").exists()


def test_nothing_is_written_over(folder: Path) -> None:
    before = (folder / "smooth.py").read_text()
    with pytest.raises(MachineError, match="is not empty"):
        write(folder, "other", "acme")
    assert (folder / "smooth.py").read_text() == before
    assert not (folder / "other.py").exists()


# ---- the command


def test_every_command_has_examples() -> None:
    runner = CliRunner()
    for words in ([], *([name] for name in module.commands)):
        shown = runner.invoke(module, [*words, "--help"]).output
        assert "Examples:" in shown
        assert f"machine module {' '.join(words)}".strip() in shown


def test_new_and_pack_say_what_they_made(tmp_path: Path) -> None:
    runner = CliRunner()
    target = tmp_path / "arm"
    created = runner.invoke(module, ["new", "rover-arm", "--namespace", "me", "--folder", str(target)])
    assert created.exit_code == 0
    assert f"next step: machine module test {target}" in created.output
    packed = runner.invoke(module, ["pack", str(target)])
    assert packed.exit_code == 0, packed.output
    assert f"{target / 'dist' / 'rover-arm.tar.gz'}: 7 files" in packed.output
    again = runner.invoke(module, ["new", "rover-arm", "--folder", str(target)])
    assert again.exit_code == 2
    assert "is not empty" in again.output
    (target / "meta.json").unlink()
    assert runner.invoke(module, ["pack", str(target)]).exit_code == 1


# ---- the machine around it


def test_the_module_is_added_to_the_configuration(folder: Path) -> None:
    meta, _ = read_folder(folder)
    document = document_of(folder, meta, None, port=0, hardware="sim", watch=True)
    assert document["modules"] == [
        {
            "name": "smooth",
            "executable_path": str(folder / "run.sh"),
            "env": {"MACHINE_HARDWARE": "sim"},
            "reload_on_change": True,
        }
    ]
    assert [component["name"] for component in document["components"]] == ["source", "mean"]
    assert document["network"]["bind_address"] == "localhost:0"


def test_the_configured_entry_of_the_module_takes_precedence(folder: Path, tmp_path: Path) -> None:
    meta, _ = read_folder(folder)
    other = {"name": "other", "executable_path": "/other"}
    own = {"name": "smooth", "executable_path": "/gone", "env": {"A": "1"}, "log_level": "debug"}
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"modules": [own, other], "network": {"no_tls": True}}))
    document = document_of(folder, meta, config, port=9, hardware="linux")
    assert document["modules"][0] == other
    assert document["modules"][1] == {
        "name": "smooth",
        "executable_path": str(folder / "run.sh"),
        "env": {"MACHINE_HARDWARE": "linux", "A": "1"},
        "log_level": "debug",
    }
    assert document["network"] == {"no_tls": True, "bind_address": "localhost:9"}


@pytest.mark.parametrize("text", ["[]", "{", '{"modules": {}}'])
def test_configurations_that_cannot_be_used(folder: Path, text: str) -> None:
    meta, _ = read_folder(folder)
    (folder / "machine.json").write_text(text)
    with pytest.raises(MachineError, match=r"machine\.json"):
        document_of(folder, meta, None, port=0, hardware="sim")

import itertools
import os
import stat
from pathlib import Path

import pytest

from agent.system.apply_files import ManagedDisk, apply_files
from agent.system.managed_files import FilePlan, WantedFile
from schema.errors import MachineError

MANIFEST = "opt/machine/etc/managed-files.json"
JOURNALD = "etc/systemd/journald.conf.d/80-machine-agent.conf"
PERIODIC = "etc/apt/apt.conf.d/80-machine-agent-periodic.conf"
OLD = [WantedFile(JOURNALD, "old journald\n"), WantedFile(PERIODIC, "old periodic\n")]
NEW = [WantedFile(JOURNALD, "new journald\n", 0o600), WantedFile("etc/new/deep/file", "new file\n")]


class PowerCutError(BaseException):
    """The power failed: unlike an OSError, no program sees it."""


class FailingDisk(ManagedDisk):
    """Disk on which the power fails before, during or after the operation with number `at`."""

    def __init__(self, root: Path, at: int, moment: str) -> None:
        super().__init__(root)
        self.left = at
        self.moment = moment

    def _step(self, moment: str) -> None:
        if self.left == 0 and moment == self.moment:
            raise PowerCutError

    def write(self, path: str, content: bytes, mode: int) -> None:
        self._step("before")
        if self.left == 0 and self.moment == "during":
            super().write(path, content[: len(content) // 2], 0o600)
            raise PowerCutError
        super().write(path, content, mode)
        self._done()

    def rename(self, path: str, new_name: str) -> None:
        self._step("before")
        super().rename(path, new_name)
        self._done()

    def remove(self, path: str) -> None:
        self._step("before")
        super().remove(path)
        self._done()

    def make_folder(self, path: str) -> None:
        self._step("before")
        super().make_folder(path)
        self._done()

    def remove_folder(self, path: str) -> None:
        self._step("before")
        super().remove_folder(path)
        self._done()

    def _done(self) -> None:
        self._step("after")
        self.left -= 1


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A system as it was before the first run."""
    for folder in ("etc/systemd", "etc/apt/apt.conf.d", "opt/machine/etc", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/apt/apt.conf.d/50unattended-upgrades").write_text("the user's")
    return tmp_path


def tree(root: Path) -> dict[str, str | tuple[int, bytes]]:
    """Return everything below a folder: content and mode of each file, target of each link."""
    result: dict[str, str | tuple[int, bytes]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            result[name] = f"link to {os.readlink(path)}"
        elif path.is_dir():
            result[name] = "folder"
        else:
            result[name] = (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
    return result


def without_manifest(root: Path) -> dict[str, str | tuple[int, bytes]]:
    return {name: content for name, content in tree(root).items() if name != MANIFEST}


def apply(root: Path, wanted: list[WantedFile]) -> FilePlan:
    return apply_files(ManagedDisk(root), MANIFEST, wanted)


def copy(content_by_name: dict[str, str | tuple[int, bytes]], target: Path) -> Path:
    """Write a tree without links into an empty folder."""
    for name, content in content_by_name.items():
        if isinstance(content, str):
            (target / name).mkdir()
        else:
            (target / name).write_bytes(content[1])
            (target / name).chmod(content[0])
    return target


def test_files_are_written_and_removed(root: Path) -> None:
    before = tree(root)
    assert apply(root, OLD) == FilePlan(write=tuple(OLD))
    assert (root / JOURNALD).read_text() == "old journald\n"
    assert stat.S_IMODE((root / JOURNALD).stat().st_mode) == 0o644
    assert stat.S_IMODE((root / MANIFEST).stat().st_mode) == 0o600
    assert set(apply(root, []).remove) == {JOURNALD, PERIODIC}
    assert tree(root) == before


def test_an_equal_file_is_not_written_again(root: Path) -> None:
    apply(root, OLD)
    identity = {path: (root / path).stat().st_ino for path in (JOURNALD, PERIODIC, MANIFEST)}
    assert set(apply(root, OLD).equal) == {JOURNALD, PERIODIC}
    assert {path: (root / path).stat().st_ino for path in identity} == identity


def test_a_changed_text_and_mode_replace_the_file(root: Path) -> None:
    apply(root, OLD)
    plan = apply(root, NEW)
    assert {file.path for file in plan.write} == {file.path for file in NEW}
    assert plan.remove == (PERIODIC,)
    assert (root / JOURNALD).read_text() == "new journald\n"
    assert stat.S_IMODE((root / JOURNALD).stat().st_mode) == 0o600
    assert not (root / PERIODIC).exists()


@pytest.mark.parametrize(
    ("first", "second"), [([], OLD), (OLD, NEW), (OLD, [])], ids=["install", "change", "uninstall"]
)
def test_a_power_cut_at_any_operation(
    tmp_path_factory: pytest.TempPathFactory, root: Path, first: list[WantedFile], second: list[WantedFile]
) -> None:
    before = tree(root)
    if first:
        apply(root, first)
    start = tree(root)
    undisturbed = copy(start, tmp_path_factory.mktemp("undisturbed"))
    counting = FailingDisk(undisturbed, 1000, "before")
    apply_files(counting, MANIFEST, second)
    expected = tree(undisturbed)
    operations = 1000 - counting.left
    cuts = 0
    for at, moment in itertools.product(range(operations), ("before", "during", "after")):
        system = copy(start, tmp_path_factory.mktemp("system"))
        try:
            apply_files(FailingDisk(system, at, moment), MANIFEST, second)
        except PowerCutError:
            cuts += 1
        interrupted = copy(tree(system), tmp_path_factory.mktemp("interrupted"))
        assert not apply(system, second).problems
        assert tree(system) == expected, f"{moment} operation {at}"
        assert not apply(interrupted, []).problems
        assert tree(interrupted) == before, f"removal, {moment} operation {at}"
    assert cuts >= 2 * operations >= 10


def test_a_file_that_the_user_changed_is_left_alone(root: Path) -> None:
    apply(root, OLD)
    (root / JOURNALD).write_text("the user's")
    plan = apply(root, NEW)
    assert "was changed since" in str(plan.problems[JOURNALD])
    assert (root / "etc/new/deep/file").exists()
    plan = apply(root, [])
    assert "no longer needed" in str(plan.problems[JOURNALD])
    assert (root / JOURNALD).read_text() == "the user's"
    (root / JOURNALD).unlink()
    apply(root, [])
    assert not (root / JOURNALD).parent.exists()
    assert not (root / MANIFEST).exists()


def test_a_file_of_the_user_is_never_taken_over(root: Path) -> None:
    (root / PERIODIC).write_text("old periodic\n")
    (root / JOURNALD).parent.mkdir()
    (root / JOURNALD).write_text("the user's")
    plan = apply(root, OLD)
    assert plan.equal == (PERIODIC,)
    assert list(plan.problems) == [JOURNALD]
    apply(root, [])
    assert (root / PERIODIC).exists()
    assert (root / JOURNALD).read_text() == "the user's"


def test_a_created_folder_stays_while_the_user_has_files_in_it(root: Path) -> None:
    apply(root, OLD)
    (root / JOURNALD).with_name("99-user.conf").write_text("the user's")
    assert not apply(root, []).problems
    assert (root / JOURNALD).with_name("99-user.conf").exists()
    assert not (root / MANIFEST).exists()


def test_a_link_in_place_of_a_folder_is_not_followed(root: Path) -> None:
    (root / "etc/systemd/journald.conf.d").symlink_to(root / "elsewhere")
    plan = apply(root, OLD)
    assert "symbolic link" in str(plan.problems[JOURNALD])
    assert [file.path for file in plan.write] == [PERIODIC]
    assert list((root / "elsewhere").iterdir()) == []


def test_a_folder_that_became_a_link_is_not_followed(root: Path) -> None:
    apply(root, OLD)
    (root / JOURNALD).rename(root / "elsewhere" / "80-machine-agent.conf")
    (root / JOURNALD).parent.rmdir()
    (root / JOURNALD).parent.symlink_to(root / "elsewhere")
    for files in (NEW, []):
        assert JOURNALD in apply(root, files).problems
        assert (root / "elsewhere/80-machine-agent.conf").read_text() == "old journald\n"


@pytest.mark.parametrize("text", ["old journald\n", "the victim's"])
def test_a_link_in_place_of_a_file_is_not_followed(root: Path, text: str) -> None:
    (root / "elsewhere/victim").write_text(text)
    (root / JOURNALD).parent.mkdir()
    (root / JOURNALD).symlink_to(root / "elsewhere/victim")
    assert JOURNALD in apply(root, OLD).problems
    assert JOURNALD in apply(root, NEW).problems
    apply(root, [])
    assert (root / JOURNALD).is_symlink()
    assert (root / "elsewhere/victim").read_text() == text


def test_a_link_in_place_of_the_temporary_file_is_not_followed(root: Path) -> None:
    (root / "elsewhere/victim").write_text("the victim's")
    (root / (PERIODIC + ".machine-agent-part")).symlink_to(root / "elsewhere/victim")
    (root / (MANIFEST + ".machine-agent-part")).symlink_to(root / "elsewhere/victim")
    assert not apply(root, OLD).problems
    assert not (root / PERIODIC).is_symlink()
    assert (root / "elsewhere/victim").read_text() == "the victim's"


@pytest.mark.parametrize("special", ["folder", "pipe"])
def test_something_other_than_a_file_is_reported(root: Path, special: str) -> None:
    (root / JOURNALD).parent.mkdir()
    if special == "folder":
        (root / JOURNALD).mkdir()
    else:
        os.mkfifo(root / JOURNALD)
    assert "not a readable file" in str(apply(root, OLD).problems[JOURNALD])


def test_a_full_disk_affects_one_file_and_is_retried(root: Path) -> None:
    class FullDisk(ManagedDisk):
        def write(self, path: str, content: bytes, mode: int) -> None:
            if path.startswith(JOURNALD):
                raise OSError(28, "No space left on device")
            super().write(path, content, mode)

    plan = apply_files(FullDisk(root), MANIFEST, OLD)
    assert "No space left on device" in str(plan.problems[JOURNALD])
    assert [file.path for file in plan.write] == [PERIODIC]
    assert [file.path for file in apply(root, OLD).write] == [JOURNALD]


def test_nothing_changes_if_the_manifest_is_damaged(root: Path) -> None:
    (root / MANIFEST).write_text("{")
    before = tree(root)
    with pytest.raises(MachineError, match="damaged"):
        apply(root, OLD)
    assert tree(root) == before


def test_nothing_changes_if_the_manifest_cannot_be_written(root: Path) -> None:
    (root / "opt/machine/etc").rmdir()
    before = tree(root)
    with pytest.raises(OSError, match="No such file"):
        apply(root, OLD)
    assert tree(root) == before

"""Distribution of the rig's test files over processes."""

from __future__ import annotations

from pathlib import Path

from tests import hil
from tests.hil.__main__ import EMULATED, SECONDS, share_out

FILES = sorted(path.name for path in Path(hil.__file__).parent.glob("test_*.py"))


def test_every_file_is_in_one_part() -> None:
    shares = share_out(FILES, 2)
    assert sorted(name for share in shares for name in share) == FILES
    assert all(shares)


def test_emulated_guests_are_in_one_part() -> None:
    first, second = share_out(FILES, 2)
    assert EMULATED & set(FILES) <= set(first)
    assert not EMULATED & set(second)


def test_the_table_names_files_that_exist() -> None:
    assert {*SECONDS, *EMULATED} <= set(FILES)


def test_files_that_ask_for_qemu_are_named() -> None:
    folder = Path(hil.__file__).parent
    asking = {name for name in FILES if "mark.qemu" in (folder / name).read_text()}
    assert asking <= EMULATED


def test_parts_take_about_as_long() -> None:
    names = [f"test_{number}.py" for number in range(9)]
    assert [len(share) for share in share_out(names, 2)] == [5, 4]

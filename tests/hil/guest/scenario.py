"""Run the scenario of a test in a guest with time travel: `python3 -m tests.hil.guest.scenario FOLDER`.

The host cannot take part: while it computes, an idle guest passes through months. Therefore the host's folder contains
the order (ORDER) when the guest boots, and the result (RESULT) after it has ended. The output of a scenario is in the
log of the console.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import subprocess
import sys
import time
import traceback
from functools import reduce
from pathlib import Path
from typing import Any, Final

import trio

ORDER: Final = "scenario.json"
RESULT: Final = "result.json"
JOURNAL: Final = "journal.log"
POWER_OFF: Final = 0x4321FEDC  # LINUX_REBOOT_CMD_POWER_OFF of linux/reboot.h
LAST_WORDS: Final = "dmesg | tail -n 60; journalctl --sync; journalctl -b --no-pager -n 200"


async def run(command: str) -> str:
    """Run a shell command to its end and return its output; AssertionError if it fails."""
    done = await trio.run_process(
        ["/bin/bash", "-c", command], check=False, capture_stdout=True, stderr=subprocess.STDOUT
    )
    output = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"{command}: ended with {done.returncode}\n{output}"
    return output


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """Run the scenario; return its `result` or the traceback of its `error`, and its `seconds` of guest time."""
    start = time.monotonic()

    async def main() -> Any:
        function = reduce(getattr, order["function"].split("."), importlib.import_module(order["module"]))
        with trio.fail_after(order["days"] * 86400):
            return await function(*order["arguments"])

    try:
        answer = {"result": trio.run(main)}
        json.dumps(answer)
    except BaseException:
        answer = {"error": traceback.format_exc()}
    return {**answer, "seconds": time.monotonic() - start}


def main(folder: Path) -> None:
    """Follow the order in the folder, then switch the machine off, which syncs the disk, unless the order is to
    cut the power.
    """
    order = json.loads((folder / ORDER).read_text())
    answer = carry_out(order)
    if "error" in answer:
        said = subprocess.run(LAST_WORDS, shell=True, capture_output=True, check=False)
        (folder / JOURNAL).write_bytes(said.stdout + said.stderr)
    (folder / RESULT).write_text(json.dumps(answer))
    if not order["power_cut"]:
        os.sync()
    ctypes.CDLL(None).reboot(POWER_OFF)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

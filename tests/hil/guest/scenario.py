"""Runs the scenario of a test in a guest with time travel: `python3 -m tests.hil.guest.scenario FOLDER`.

The host cannot take part: while it thinks, an idle guest goes on through months. So the folder, which is the host's,
has the order (ORDER) when the guest boots, and the result (RESULT) when it has ended. What a scenario prints is in the
console's log.
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
LAST_WORDS: Final = "dmesg | tail -n 60; journalctl -b --no-pager -n 200"


async def run(command: str) -> str:
    """Run a line of shell to its end and return what it wrote; AssertionError if it fails."""
    done = await trio.run_process(
        ["/bin/bash", "-c", command], check=False, capture_stdout=True, stderr=subprocess.STDOUT
    )
    output = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"{command}: ended with {done.returncode}\n{output}"
    return output


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """Run the scenario: its `result`, or the traceback of its `error`; `seconds` of the guest's time that it took."""
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
    """Do what the folder's order says, and switch the machine off: what was written is on its disk then, unless the
    order is that the power is cut.
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

"""The reference of machine-agent against a running one: its files, and the commands of its control socket."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest

from agent import reference
from agent.layout import Layout
from schema.errors import MachineError
from tests.e2e.agent.support import agent, new_part
from tests.e2e.cloud.process import cloud


async def test_files_and_commands(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        await part.save({"agent": {"advanced_settings": {"viam_server_env": {"A": "1"}}}})
        async with agent(tmp_path, part.file) as running_agent:
            await running_agent.serving()
            await running_agent.ask("lease-take", name="backup", seconds=60, note="")
            with pytest.raises(MachineError) as caught:
                await running_agent.ask("no-such-command")
            commands = caught.value.remedy.removeprefix("use one of ").split(", ")
            assert commands == sorted(command.name for command in reference.COMMANDS)
            files = [path for path in running_agent.layout.root.rglob("*") if not path.is_dir()]
            files = [path for path in files if not path.suffix[1:].isdecimal()]  # they are being written
            assert len(files) > 10
            unknown = [path for path in files if not known(path, running_agent.layout)]
            assert unknown == [], "files that are not in agent/reference.py"


def known(path: Path, layout: Layout) -> bool:
    """Return whether the table has this file, whose folders are others than those of an installation."""
    below = path.relative_to(layout.run) if path.is_relative_to(layout.run) else path.relative_to(layout.root)
    usual = (Layout().run if path.is_relative_to(layout.run) else Layout().root) / below
    return any(fnmatch(str(usual), file.path) for file in reference.FILES)

"""Run the programs that build the image: with a separate log, and a line of progress for each step."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.hil.image.places import BUILD


class BuildError(Exception):
    """A step failed; the message names the command and the remedy."""


@asynccontextmanager
async def step(title: str) -> AsyncIterator[None]:
    """Print the title of a step and the time that it took."""
    start = trio.current_time()
    yield
    print(f"    {title:<58}{trio.current_time() - start:6.1f} s", flush=True)


async def command(*argv: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a program and return its standard output. BuildError, with the last lines, if it fails."""
    words = [str(word) for word in argv]
    log = BUILD / "build.log"
    done = await trio.run_process(
        words,
        stdin=b"",
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
    )
    said = done.stderr.decode(errors="replace")
    with log.open("a") as out:
        out.write(f"$ {shlex.join(words)}\n{done.stdout.decode(errors='replace')}{said}\n")
    if done.returncode != 0:
        tail = "\n".join((done.stdout.decode(errors="replace") + said).strip().splitlines()[-15:])
        raise BuildError(f"{shlex.join(words)[:300]}\nended with {done.returncode}; the whole log is {log}\n{tail}")
    return done.stdout.decode(errors="replace")


async def shell(script: str, cwd: Path | None = None, **variables: str | Path) -> str:
    """Run a bash script that stops at its first error; `variables` are in its environment."""
    env = {name: str(value) for name, value in variables.items()}
    return await command("bash", "-euo", "pipefail", "-c", script, cwd=cwd, env=env)


def install_host_tools(missing: Mapping[str, str]) -> None:
    """Install the Debian packages of missing programs on this computer."""
    packages = sorted(set(missing.values()))
    print(f"    installing {' '.join(packages)}", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        if subprocess.run(["apt-get", *words], env=env, stdout=sys.stderr, check=False).returncode:
            raise BuildError(f"apt-get {' '.join(words)} failed; the rig needs: {' '.join(packages)}")

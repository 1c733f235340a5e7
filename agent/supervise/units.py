"""The units of systemd for both programs, and the file with the environment of machine-server. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from agent.layout import AGENT, SERVER, Layout
from agent.supervise.health import FIRST_DELAY

SERVER_UNIT: Final = f"{SERVER}.service"
AGENT_UNIT: Final = f"{AGENT}.service"
RESTART_PAUSE: Final = Path(f"/run/systemd/system/{SERVER_UNIT}.d/10-restart-pause.conf")
"""Drop-in of the agent: see `agent.supervise.pause`. Drop-ins of people, such as override.conf, have names that come
later in the order of systemd, and so count more."""
WATCHDOG: Final = 120  # seconds without progress after which systemd kills the agent


class ServerFiles(NamedTuple):
    """Files by which the agent and the unit of machine-server understand each other."""

    environment: Path  # variables; contains secrets
    disabled: Path  # exists while machine-server must not be started
    waits: Path  # exists if machine-server must not be started at boot before the agent allows it
    allowed: Path  # exists after that, until the next boot
    event: Path  # written by systemd after each start and end
    address: Path  # written by machine-server when it serves


def files_of(layout: Layout) -> ServerFiles:
    """Return the files of machine-server."""
    state, run = layout.state / SERVER, layout.run / SERVER
    return ServerFiles(
        environment=state.with_suffix(".env"),
        disabled=state.with_suffix(".disabled"),
        waits=state.with_suffix(".waits"),
        allowed=run.with_suffix(".allowed"),
        event=run.with_suffix(".event"),
        address=run.with_suffix(".address"),
    )


def server_environment(layout: Layout, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of machine-server: those of the settings, and those that only the agent may set."""
    return {
        **settings,
        "VIAM_AGENT_HANDLES_NEEDS_RESTART_CHECKING": "true",
        "MACHINE_ROOT": str(layout.root),
        "MACHINE_ADDRESS_FILE": str(files_of(layout).address),
    }


MEMORY_MAX: Final = "80%"
"""Memory of the computer that machine-server and its modules may use, so that the agent and the system go on."""
TASKS_MAX: Final = 4096
"""Processes and threads of machine-server and its modules."""


def server_unit(layout: Layout, credentials: Path) -> str:
    """Return the unit of machine-server, with limits of its control group that a drop-in can replace.

    It belongs to systemd alone, so that machine-server runs on when the agent ends, however that happens.
    """
    files = files_of(layout)
    touch = f"-/bin/sh -c ': >{_quoted(str(files.event), shell=True)}'"
    environment = "".join(
        f"Environment={_quoted(f'{name}={value}')}\n"
        for name, value in {**server_environment(layout, {}), "MACHINE_HOME": str(layout.home)}.items()
    )
    return f"""[Unit]
Description=machine-server
After=network.target
StartLimitIntervalSec=0
ConditionPathExists={_escaped(credentials)}
ConditionDirectoryNotEmpty={_escaped(layout.launch(SERVER))}
ConditionPathExists=!{_escaped(files.disabled)}
ConditionPathExists=|!{_escaped(files.waits)}
ConditionPathExists=|{_escaped(files.allowed)}

[Service]
Type=exec
{environment}EnvironmentFile=-{_escaped(files.environment)}
ExecStart={_quoted(str(layout.launcher))} {SERVER} -config {_quoted(str(credentials))}
SyslogIdentifier={SERVER}
ExecStartPost={touch}
ExecStopPost={touch}
RuntimeDirectory=machine
RuntimeDirectoryPreserve=yes
Restart=always
RestartSec={FIRST_DELAY:g}
KillMode=mixed
TimeoutStopSec=120
OOMPolicy=continue
MemoryMax={MEMORY_MAX}
TasksMax={TASKS_MAX}

[Install]
WantedBy=multi-user.target
"""


def agent_unit(layout: Layout, credentials: Path, defaults: Path) -> str:
    """Return the unit of machine-agent."""
    options = f"--config {_quoted(str(credentials))} --defaults {_quoted(str(defaults))}"
    return f"""[Unit]
Description=machine-agent
After=network.target NetworkManager.service bluetooth.service
StartLimitIntervalSec=0

[Service]
Type=notify
Environment={_quoted(f"MACHINE_ROOT={layout.root}")}
ExecStart={_quoted(str(layout.launcher))} {AGENT} {options}
SyslogIdentifier={AGENT}
RuntimeDirectory=machine
RuntimeDirectoryPreserve=yes
Restart=always
RestartSec=5
TimeoutStartSec=300
TimeoutStopSec=90
WatchdogSec={WATCHDOG}
KillMode=mixed
OOMScoreAdjust=-500

[Install]
WantedBy=multi-user.target
"""


def environment_file(variables: Mapping[str, str]) -> str:
    """Return the variables as the text of an EnvironmentFile=. ValueError for a name or value that it cannot hold."""
    lines = []
    for name, value in sorted(variables.items()):
        if not name.isascii() or not name.isidentifier() or "\0" in value:
            raise ValueError(f"the environment variable {name!r} cannot be stored: expected letters, digits and '_'")
        for character in '\\"`$':
            value = value.replace(character, f"\\{character}")
        lines.append(f'{name}="{value}"\n')
    return "".join(lines)


def _escaped(path: Path) -> str:
    return str(path).replace("%", "%%")


def _quoted(text: str, *, shell: bool = False) -> str:
    """Return a word of a unit file; with `shell`, a word of a shell command inside of single quotes there."""
    if any(character in text for character in "\n'\"\\"):
        raise ValueError(f"{text!r} cannot be written into a unit: it contains a quote, a backslash or a line break")
    text = text.replace("%", "%%").replace("$", "$$")
    return f'"{text}"' if shell or not text.replace("/", "").replace("-", "").replace("_", "").isalnum() else text

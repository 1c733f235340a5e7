"""The command line of machine-agent.

Only modules that are needed to parse options are imported here, so that `--version` and usage errors are fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

import click

from support import AbsolutePath, hold_signals, lean_imports, release_signals

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_STUCK: Final = 3

INSTALLED: Final = Path("/opt/machine")
"""Folder of the installed programs; units and links name it."""
SYSTEMD: Final = Path("/run/systemd/system")  # exists where systemd is the init process: sd_booted(3)
_PATH: Final = AbsolutePath()


@click.command(
    "machine-agent",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 118, "terminal_width": 118},
    epilog=(
        "Exit codes: 0 stopped on request; 1 failed, or did not start; 2 invalid command line; 3 did not stop in time. "
        "MACHINE_AGENT_FAST_START=1 starts machine-server at once, even if a setting or --wait says otherwise."
    ),
)
@click.option(
    "-c", "--config", type=_PATH, default=Path("/etc/machine.json"), show_default=True, metavar="FILE",
    help="Credentials of the machine.",
)  # fmt: skip
@click.option(
    "--defaults", type=_PATH, default=Path("/etc/machine-defaults.json"), show_default=True, metavar="FILE",
    help="Settings of the manufacturer; settings of the cloud override them.",
)  # fmt: skip
@click.option("-d", "--debug", is_flag=True, envvar="MACHINE_AGENT_DEBUG", help="Log at debug level.")
@click.option(
    "-w", "--wait", is_flag=True, envvar="MACHINE_AGENT_WAIT_FOR_UPDATE",
    help="Wait for the network and an update check before starting machine-server.",
)  # fmt: skip
@click.option(
    "--install", is_flag=True,
    help="Install machine-agent as a system service, start it, and exit. Can be repeated.",
)  # fmt: skip
@click.option(
    "--preinstall", type=_PATH, metavar="DIRECTORY",
    help="Install into the root file system of an image that is mounted there, and exit.",
)  # fmt: skip
@click.option("--uninstall", is_flag=True, help="Remove machine-agent, machine-server and all their files, and exit.")
@click.option(
    "--credentials", type=_PATH, metavar="FILE",
    help="While installing, copy this file to the path of --config, with the certificates that it names.",
)  # fmt: skip
@click.option(
    "--agent", type=_PATH, metavar="FILE",
    help="While installing, use this release file of machine-agent. [default: the one that runs]",
)  # fmt: skip
@click.option(
    "--server", type=_PATH, metavar="FILE",
    help="While installing, use this release file of machine-server. [default: the installed one, or the cloud's]",
)  # fmt: skip
@click.option(
    "--release-root", type=_PATH, metavar="FILE",
    help="While installing, pin this root.json: only releases that are signed with its keys are installed.",
)  # fmt: skip
@click.option(
    "--migrate", is_flag=True,
    help="While installing, disable viam-agent and viam-server, and copy their credentials and defaults.",
)  # fmt: skip
@click.option("--keep-credentials", is_flag=True, help="While uninstalling, keep credentials and defaults.")
@click.option(
    "--dev-mode", is_flag=True, envvar="MACHINE_AGENT_DEVMODE",
    help="Run without root and without systemd; neither install updates of the agent nor configure the system.",
)  # fmt: skip
@click.option(
    "--root", type=_PATH, default=None, envvar="MACHINE_ROOT", metavar="DIRECTORY",
    help="Folder of all programs and their state. [default: /opt/machine; in --dev-mode ~/.local/share/machine]",
)  # fmt: skip
@click.option("-v", "--version", is_flag=True, help="Print the version and exit.")
def command(
    config: Path,
    defaults: Path,
    debug: bool,
    wait: bool,
    install: bool,
    preinstall: Path | None,
    uninstall: bool,
    credentials: Path | None,
    agent: Path | None,
    server: Path | None,
    release_root: Path | None,
    migrate: bool,
    keep_credentials: bool,
    dev_mode: bool,
    root: Path | None,
    version: bool,
) -> None:
    """Install, update and supervise machine-server, and keep this device as its cloud configures it."""
    if version:
        release_signals()
        from support import version as program_version

        click.echo(f"machine-agent {program_version()}")
        return
    actions = [
        name
        for name, chosen in (("install", install), ("preinstall", preinstall is not None), ("uninstall", uninstall))
        if chosen
    ]
    installing = {"credentials": credentials, "agent": agent, "server": server, "release-root": release_root}
    if wrong := _contradiction(actions, dev_mode, root, {**installing, "migrate": migrate}, keep_credentials):
        _fail(wrong, EXIT_USAGE)
    if os.geteuid() != 0 and not dev_mode:
        _fail("root is required: use sudo, or --dev-mode for a trial without installation", EXIT_FAILED)
    if not actions and not dev_mode and not SYSTEMD.is_dir():
        remedy = "run `machine-agent --dev-mode` under the supervision that the system has"
        _fail(f"systemd is not the init process of this system: {remedy}", EXIT_FAILED)
    if actions:
        release_signals()
        from agent.install import commands

        options = commands.InstallOptions(
            config, defaults, credentials, agent, server, release_root, migrate, keep_credentials
        )
        if preinstall is not None:
            sys.exit(commands.run_preinstall(preinstall, options))
        sys.exit(commands.run_install(options) if install else commands.run_uninstall(options))
    with lean_imports():
        from agent.app import AgentOptions, main

    sys.exit(
        main(
            AgentOptions(
                config=config,
                defaults=defaults,
                debug=debug,
                wait=wait,
                dev_mode=dev_mode,
                root=root,
                fast_start=os.environ.get("MACHINE_AGENT_FAST_START", "") not in ("", "0", "false"),
            )
        )
    )


def _contradiction(
    actions: Sequence[str],
    dev_mode: bool,
    root: Path | None,
    installing: Mapping[str, object],
    keep_credentials: bool,
) -> str:
    """Return what is wrong with a combination of options; empty if nothing is. `installing` are those of --install."""
    if len(actions) > 1:
        return f"--{actions[0]} and --{actions[1]} exclude each other"
    if actions and dev_mode:
        return f"--dev-mode does not install anything: leave it out, or leave out --{actions[0]}"
    if actions and root not in (None, INSTALLED):
        return f"--{actions[0]} always uses /opt/machine: leave out --root and the variable MACHINE_ROOT"
    if actions in ([], ["uninstall"]):
        for name, value in installing.items():
            if value:
                return f"--{name} is only for --install and --preinstall"
    if keep_credentials and actions != ["uninstall"]:
        return "--keep-credentials is only for --uninstall"
    return ""


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"machine-agent: {message}", err=True)
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run machine-agent with `arguments` (default: those of the process), and exit with its exit code."""
    hold_signals()
    command.main(args=list(arguments) if arguments is not None else None, prog_name="machine-agent")


if __name__ == "__main__":
    main()

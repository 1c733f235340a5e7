"""Facts about machine-agent for docs/reference/machine-agent.md: variables, files, commands, exit codes. Pure.

tests/e2e/agent/test_reference.py compares them with a running agent, tests/unit/agent/test_reference.py with the
source.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from agent.layout import SERVER, Layout
from agent.supervise.units import RESTART_PAUSE, files_of
from agent.system import journald, state, upgrades

_LAYOUT: Final = Layout()
_ROOT, _RUN, _STATE = _LAYOUT.root, _LAYOUT.run, _LAYOUT.state
_RENEWED: Final = "installation, machine-agent after it was confirmed"
_SERVER: Final = files_of(_LAYOUT)


class Variable(NamedTuple):
    """An environment variable. `of` is the program that reads it."""

    name: str
    of: str
    meaning: str


class OwnFile(NamedTuple):
    """A file or folder; `*` in the path stands for any text. `until` says what removes it."""

    path: str
    content: str
    writer: str
    until: str = "uninstall"


class SocketCommand(NamedTuple):
    """A command of the control socket."""

    name: str
    arguments: str
    does: str


AGENT_, SERVER_, INSTALLER = "machine-agent", "machine-server", "installation"

VARIABLES: Final = (
    Variable("MACHINE_AGENT_DEBUG", AGENT_, "`1`: as `--debug`."),
    Variable("MACHINE_AGENT_WAIT_FOR_UPDATE", AGENT_, "`1`: as `--wait`."),
    Variable("MACHINE_AGENT_FAST_START", AGENT_, "`1`: start machine-server at once, even with `--wait` or the setting "
             "`wait_for_update_check`."),
    Variable("MACHINE_AGENT_DEVMODE", AGENT_, "`1`: as `--dev-mode`."),
    Variable("MACHINE_ROOT", "all", f"Folder of all programs and their state; default `{_ROOT}`. As `--root`."),
    Variable("XDG_DATA_HOME", AGENT_, "In `--dev-mode` without `--root`: the root is `machine` in this folder; default "
             "`~/.local/share`."),
    Variable("TZ", AGENT_, "Time zone of the maintenance windows, instead of that of the computer."),
    Variable("MACHINE_AGENT_CLOCK_SPEED", AGENT_, "How much faster the times of updates pass, for tests."),
    Variable("NOTIFY_SOCKET", AGENT_, "Set by systemd: where to report that the agent is ready and makes progress."),
    Variable("WATCHDOG_USEC", AGENT_, "Set by systemd: microseconds without progress after which the agent is killed."),
    Variable("WATCHDOG_PID", AGENT_, "Set by systemd: the process that the watchdog is for."),
    Variable("MACHINE_RELEASE", "both programs", "Set by the launcher: SHA-256 of the release that was started."),
    Variable("MACHINE_LAUNCH_FELL_BACK", "both programs", "Set by the launcher: `1` if it started another release than "
             "the one that was to run."),
    Variable("MACHINE_RELEASE_FILE", INSTALLER, "Set by a release file that runs itself: its own path."),
    Variable("MACHINE_RELEASE_FOLDER", INSTALLER, "Set by a release file that runs itself: where it is unpacked."),
    Variable("VIAM_AGENT_HANDLES_NEEDS_RESTART_CHECKING", SERVER_, "Set by the agent: `true`, because it asks the "
             "cloud for restarts."),
    Variable("MACHINE_ADDRESS_FILE", SERVER_, "Set by the agent: the file for the address of machine-server."),
    Variable("MACHINE_HOME", SERVER_, "Set by its unit: where machine-server stores its data."),
    Variable("MACHINE_ENVIRONMENT", SERVER_, "Set by the agent: a digest of the variables, by which it notices a "
             "change."),
    Variable("MACHINE_READY_FD", SERVER_, "Never passed on by the agent, because the descriptor is its own."),
    Variable("MACHINE_HOOK", "hooks", "Set by the agent: the moment, such as `before-switch`."),
    Variable("MACHINE_PROGRAM", "hooks", "Set by the agent: the program that is changed."),
    Variable("MACHINE_VERSION_FROM", "hooks", "Set by the agent: the version that is left."),
    Variable("MACHINE_VERSION_TO", "hooks", "Set by the agent: the version that is to run."),
    Variable("MACHINE_TIME_LIMIT", "hooks", "Set by the agent: seconds after which the hook is killed."),
    Variable("MACHINE_RESULT", "hooks", "Set by the agent: how the update ended, after it."),
    Variable("MACHINE_REASON", "hooks", "Set by the agent: why it was not updated, if there is a reason."),
)  # fmt: skip
"""Variables that the programs read, or set for each other."""

FILES: Final = (
    OwnFile("/etc/machine.json", "credentials of the machine", "person, installation", "uninstall, unless "
         "`--keep-credentials`"),
    OwnFile("/etc/machine-ca.pem", "certificates that the credentials name", INSTALLER, "uninstall, unless "
         "`--keep-credentials`"),
    OwnFile("/etc/machine-defaults.json", "settings of the manufacturer", "person", "uninstall, unless "
         "`--keep-credentials`"),
    OwnFile(str(_LAYOUT.hooks), "hooks: programs that run before and after updates", "person", "person"),
    OwnFile("/usr/local/lib/systemd/system/machine-*.service", "units of both programs; in `/etc/systemd/system` if "
         "systemd does not read this folder", _RENEWED),
    OwnFile("/usr/local/bin/machine-agent", "command of the installed release; also `machine`, if the release has it",
         _RENEWED),
    OwnFile(f"/{journald.PATH}", "limits of the journal", AGENT_, "setting, uninstall"),
    OwnFile(f"/{upgrades.PERIODIC_PATH}", "switches of unattended-upgrades", AGENT_, "setting, uninstall"),
    OwnFile(f"/{upgrades.ORIGINS_PATH}", "origins of unattended-upgrades", AGENT_, "setting, uninstall"),
    OwnFile(str(_LAYOUT.launcher), "the launcher", _RENEWED),
    OwnFile(f"{_ROOT}/releases/machine-*/*", "a staged release; its folder is named by the SHA-256 of its file. "
         "`release.json` in it describes it", AGENT_, "cleaning, unless it is current, previous, factory or in use"),
    OwnFile(f"{_ROOT}/releases/machine-*/factory", "link to the release of the installation", INSTALLER),
    OwnFile(f"{_ROOT}/launch/machine-*/run", "link to the release to start", AGENT_),
    OwnFile(f"{_ROOT}/launch/machine-*/back", "link to the release that is started if `run` cannot be", AGENT_),
    OwnFile(f"{_ROOT}/launch/machine-*/trial", "number of starts of a release on trial",
         "machine-agent, machine-launch", "end of the trial"),
    OwnFile(f"{_STATE}/machine-*.json", "record of the releases and the update of a program, with a checksum", AGENT_),
    OwnFile(f"{_STATE}/machine-*.json.previous", "the record before that, which is used if the record is damaged",
         AGENT_),
    OwnFile(f"{_STATE}/settings.json", "last settings of the cloud, with secrets", AGENT_),
    OwnFile(f"{_STATE}/network.json*", "networks that were entered on the device, generated secrets and the last "
         "attempt, with a copy", AGENT_),
    OwnFile("/opt/machine/etc/force_provisioning_mode", "starts the hotspot, and is deleted", "person"),
    OwnFile("/opt/machine/etc/allow_new_credentials", "allows credentials of another cloud once",
         "person, machine-agent", "when they were stored"),
    OwnFile("/run/machine-agent/wifi/*", "control sockets of wpa_supplicant; only root can enter", AGENT_, "reboot"),
    OwnFile(f"{_STATE}/chosen-versions.json", "versions that were chosen by `machine agent update`", AGENT_),
    OwnFile(f"{_STATE}/{SERVER}.exits", "last unexpected ends of machine-server", AGENT_),
    OwnFile(str(_SERVER.environment), "variables of machine-server, with secrets", AGENT_),
    OwnFile(str(_SERVER.disabled), "exists while `disable_viam_server` is set", AGENT_, "setting"),
    OwnFile(str(_SERVER.waits), "exists while `wait_for_update_check` is set", AGENT_, "setting"),
    OwnFile(str(_LAYOUT.reserve), "1 MiB that is deleted when the disk is full, for a roll-back", AGENT_),
    OwnFile(f"{_STATE}/installed-files.json", "manifest of the files outside of this folder", INSTALLER),
    OwnFile(f"{_STATE}/{state.MANIFEST}", "manifest of the files of the system configuration", AGENT_),
    OwnFile(f"{_STATE}/{state.RECORD}", "what the system configuration has changed, to undo it", AGENT_),
    OwnFile(f"{_STATE}/units-enabled", "exists once the units were enabled", INSTALLER),
    OwnFile(f"{_LAYOUT.downloads}/*", "files that are downloaded, or wait to be staged", AGENT_, "end of the update"),
    OwnFile(f"{_LAYOUT.queue}/*", "log entries that are not uploaded yet", AGENT_, "upload"),
    OwnFile(f"{_LAYOUT.trust}/*", "pinned root and verified metadata of signed releases",
         "installation, machine-agent"),
    OwnFile(f"{_LAYOUT.home}/*", "data of machine-server: cached configuration, modules, captured data", SERVER_),
    OwnFile(str(_LAYOUT.console), "control socket; only root can connect", AGENT_, "reboot"),
    OwnFile(f"{_LAYOUT.leases}/*", "leases that hold off maintenance", "programs, machine-agent", "expiry, reboot"),
    OwnFile(str(_LAYOUT.network_runtime), "interfaces that were taken over from other programs, and addresses that "
         "were added", AGENT_, "reboot"),
    OwnFile(str(_LAYOUT.lock), "lock of the only agent, and its process id", AGENT_, "reboot"),
    OwnFile(str(_LAYOUT.installation_lock), "lock of the only installation or removal", INSTALLER, "reboot"),
    OwnFile(str(_SERVER.address), "address of machine-server while it serves", SERVER_, "reboot"),
    OwnFile(str(_SERVER.event), "written after each start and end of machine-server", "its unit", "reboot"),
    OwnFile(str(_SERVER.allowed), "exists once machine-server may be started after the boot", AGENT_, "reboot"),
    OwnFile(str(RESTART_PAUSE), "pause before the next restart of machine-server, after more than one crash", AGENT_,
         "10 minutes without a crash, stop, uninstall, reboot"),
    OwnFile(f"{_RUN}/apt.log", "output of package installations", AGENT_, "reboot"),
)  # fmt: skip
"""Files and folders. In `--dev-mode`, those of `/run/machine` are in `run` of the root, and there are no units."""

COMMANDS: Final = (
    SocketCommand("status", "", "the report of the agent"),
    SocketCommand("check", "", "ask the cloud now"),
    SocketCommand("restart", "", "restart machine-server now"),
    SocketCommand("update", "`program`, `choice`, `now`", "ask the cloud now; install `choice`, a version or URL; "
                  "an empty one ends an earlier choice; `now` does not wait for maintenance"),
    SocketCommand("rollback", "`program`", "go back to the release that ran before"),
    SocketCommand("hold", "`program`, `until`", "switch to no other release before `until`, seconds "
                  "since 1970; 0 ends it"),
    SocketCommand("lease-take", "`name`, `seconds`, `note`", "hold off maintenance, or renew that"),
    SocketCommand("lease-release", "`name`", "end a lease"),
    SocketCommand("lease-list", "", "the leases in force"),
    SocketCommand("network-status", "", "interfaces, what happens next, the hotspot and the secrets of the device"),
    SocketCommand("network-scan", "", "the wifi networks that are heard"),
    SocketCommand("network-join", "`ssid`, `password`, `hidden`", "store a network and join it"),
    SocketCommand("network-forget", "`name`", "forget an entered network, by its label or SSID"),
    SocketCommand("network-explain", "", "which network is used, why not the others, and what happens next"),
    SocketCommand("provision", "`new_credentials`", "start the hotspot; accept credentials of another cloud once"),
)  # fmt: skip
"""Commands of the control socket. `program` is `machine-server` (the default) or `machine-agent`."""

EXIT_CODES: Final = {
    0: "stopped on request",
    1: "failed, or did not start; the message is on standard error",
    2: "invalid command line",
    3: "did not stop in time",
    64: "of the launcher: wrong usage",
    78: "of the launcher: there is nothing to start",
}
"""Exit codes of machine-agent and machine-launch."""

"""The command line of machine-server.

Only modules that are needed to parse options are imported here, so that `-version` and usage errors are fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from engine import EXIT_FAILED, EXIT_USAGE, Options
from support import AbsolutePath, LongOptions, hold_signals, lean_imports, release_signals, switch_option, value_option

NO_CONFIG: Final = """-config is missing: name the machine's configuration file

  machine-server -config machine.json    run the machine that this file configures; {} has no resources
  machine check machine.json             check the file and list all mistakes
  machine-server -help                   list all options"""

_PATH: Final = AbsolutePath()


@click.command(
    "machine-server",
    cls=LongOptions,
    context_settings={"help_option_names": ["-h", "-help", "--help"], "max_content_width": 118, "terminal_width": 118},
    epilog=(
        "Exit codes: 0 stopped on request; 1 failed, or did not start; 2 invalid command line; 3 did not stop in time. "
        "SIGTERM or SIGINT stops everything in order within 60 s; a second signal shortens this to 2 s."
    ),
)
@value_option("config", _PATH, "FILE", "Configuration file: a full machine configuration, or cloud credentials.")
@switch_option("debug", "Log at debug level, regardless of the configuration.")
@value_option("log-file", _PATH, "FILE", "Write logs to FILE, with rotation, instead of standard output.")
@switch_option("no-tls", "Serve without TLS even if the configuration or the cloud has a certificate.")
@switch_option("allow-insecure-creds", "Accept API keys over connections without TLS from other computers.")
@switch_option("allow-open-shell", "If no keys are configured, let all clients open shells and tunnels and copy files.")
@switch_option("reveal-sensitive-config-diffs", "Log changes of the configuration, including secrets.")
@switch_option("install", "Install and start a systemd service that runs it with the other options, and exit.")
@switch_option("uninstall", "Stop and remove the service that -install has installed, and exit.")
@switch_option("version", "Print the version and exit.")
@value_option(
    "dump-resources", _PATH, "FILE", "Write all models, with the JSON Schemas of their attributes, to FILE and exit."
)
@value_option(
    "cpuprofile", _PATH, "FILE", "Profile the whole run (at about half speed) and write a file for pstats to FILE."
)
@switch_option("network-check", "Run only the network checks and exit.")
@switch_option("disable-mdns", "Do not announce the machine by multicast DNS.")
@switch_option("ftdc", "Record full-time diagnostic data: all statistics, every second.", default=True)
@switch_option("output-telemetry", "Print metrics every 10 s, and spans; also send them to tracing.otlpendpoint.")
@value_option(
    "shareddir", _PATH, "DIRECTORY", "Serve static files of the web pages from DIRECTORY if they exist there."
)
@switch_option("untrusted-env", "Refuse processes and shell access.")
@switch_option("webprofile", "Serve profiles, tasks and the graph under /debug/, to this computer only.")
@click.option(
    "-hardware",
    "--hardware",
    envvar="MACHINE_HARDWARE",
    default="linux",
    metavar="FAMILY",
    help="Hardware for drivers: linux, gpiozero, sim, or module:function. [default: linux]",
)
@switch_option("webrtc", "Let own pages, and clients through the cloud, connect by WebRTC.", default=True)
def command(**options: Any) -> None:
    """Run a machine: its components, its services, and the server through which clients use them.

    Options start with one or two dashes; a value follows after a space or '='. Options listed without a value are
    switches, which may have the value true or false (-debug=false).
    """
    short = ("version", "dump_resources", "network_check", "install", "uninstall")
    if any(options[name] not in (None, False) for name in short):
        release_signals()
    if options["version"]:
        from support import version

        click.echo(f"machine-server {version()}")
        return
    if options["dump_resources"] is not None:
        from runtime.server.dump import dump_resources

        try:
            dump_resources(options["dump_resources"])
        except OSError as error:
            _fail(f"{options['dump_resources']} cannot be written: {error.strerror}", EXIT_FAILED)
        return
    if options["network_check"]:
        from runtime.parts.netcheck.command import main_check

        sys.exit(main_check(options["config"]))
    if options["install"] and options["uninstall"]:
        _fail("-install and -uninstall exclude each other", EXIT_USAGE)
    if options["uninstall"]:
        from runtime.parts.service.install import run_uninstall

        sys.exit(run_uninstall())
    if options["config"] is None:
        _fail(NO_CONFIG, EXIT_USAGE)
    if options["install"]:
        from runtime.parts.service.install import run_install

        sys.exit(run_install(options))
    sys.exit(_serve(options))


def _serve(options: dict[str, Any]) -> int:
    parsed = Options(
        config=options["config"],
        debug=options["debug"],
        log_file=options["log_file"],
        no_tls=options["no_tls"],
        allow_insecure_creds=options["allow_insecure_creds"],
        allow_open_shell=options["allow_open_shell"],
        reveal_sensitive_config_diffs=options["reveal_sensitive_config_diffs"],
        untrusted_env=options["untrusted_env"],
        web_profile=options["webprofile"],
        output_telemetry=options["output_telemetry"],
        ftdc=options["ftdc"],
        shared_dir=_folder("-shareddir", options["shareddir"]),
        mdns=not options["disable_mdns"],
        hardware=options["hardware"],
        webrtc=options["webrtc"],
        ready_fd=_ready_fd(),
        address_file=Path(text).absolute() if (text := os.environ.pop("MACHINE_ADDRESS_FILE", "")) else None,
    )
    profile = options["cpuprofile"]
    if profile is None:
        return _main()(parsed)
    from cProfile import Profile

    try:
        profile.touch(mode=0o600)
    except OSError as error:
        _fail(f"{profile} cannot be written: {error.strerror}", EXIT_FAILED)
    with Profile() as profiler:
        code = _main()(parsed)
    try:
        profiler.dump_stats(profile)
    except OSError as error:
        _fail(f"{profile} cannot be written: {error.strerror}", EXIT_FAILED)
    return code


def _main() -> Callable[[Options], int]:
    """Import the composition root."""
    with lean_imports():
        from runtime.server.app import main
    return main


def _folder(option: str, path: Path | None) -> Path | None:
    """Return `path`; exits the program unless it is a readable folder."""
    if path is not None and not (path.is_dir() and os.access(path, os.R_OK | os.X_OK)):
        _fail(f"{option} {path} is not a folder that this user can read", EXIT_FAILED)
    return path


def _ready_fd() -> int | None:
    """Return the descriptor on which the parent process waits for the port to be open, if any."""
    text = os.environ.pop("MACHINE_READY_FD", "")
    if not text:
        return None
    try:
        descriptor = int(text)
        os.fstat(descriptor)
    except (ValueError, OSError):
        _fail(f"MACHINE_READY_FD={text!r} is not an open descriptor", EXIT_USAGE)
    os.set_inheritable(descriptor, False)
    return descriptor


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"machine-server: {message}", err=True)
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run machine-server with `arguments` (default: those of the process), and exit with its exit code."""
    hold_signals()
    command.main(args=list(arguments) if arguments is not None else None, prog_name="machine-server")


if __name__ == "__main__":
    main()

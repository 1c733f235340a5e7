"""The command line of machine-server: options in one dash or two, `-ftdc=false`, bare booleans.

Only what is needed to read the options is imported here, so that `-version` and mistakes answer at once.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click

from runtime.options import EXIT_FAILED, EXIT_USAGE, Options
from telemetry.early_stop import hold, release

NO_CONFIG: Final = """-config is missing: name the machine's configuration file

  machine-server -config machine.json    run the machine of this file; {} is a machine without resources
  machine check machine.json             find every mistake in it first
  machine-server -help                   all options"""

Function = TypeVar("Function", bound=Callable[..., Any])


def _switch(name: str, help_text: str, *, default: bool = False) -> Callable[[Function], Function]:
    """A boolean in the style of Go: bare, or with `=true` or `=false`."""
    return click.option(
        f"-{name}",
        f"--{name}",
        type=click.BOOL,
        is_flag=False,
        flag_value="true",
        default=default,
        metavar="BOOLEAN",
        help=f"{help_text}{' [default: true]' if default else ''}",
    )


def _value(name: str, kind: Any, metavar: str, help_text: str) -> Callable[[Function], Function]:
    return click.option(f"-{name}", f"--{name}", type=kind, metavar=metavar, help=help_text)


_PATH: Final = click.Path(path_type=Path)


class Command(click.Command):
    """Options of one dash with long names: a mistyped one is told which was meant, and help has a line for each."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As in click, but an unknown option is not taken apart into letters."""
        kinds = {name: param for param in self.get_params(ctx) for name in param.opts}
        rest = iter(args)
        for text in rest:
            name, equals, _ = text.partition("=")
            if text == "--":
                break
            if not text.startswith("-") or text == "-":
                continue
            if name not in kinds:
                raise click.NoSuchOption(name, possibilities=_near(name, kinds), ctx=ctx)
            if not equals and not _may_be_bare(kinds[name]):
                next(rest, None)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line for each option."""
        rows = []
        for param in self.get_params(ctx):
            assert isinstance(param, click.Option)
            value = "" if _may_be_bare(param) else f" {param.metavar}"
            rows.append((f"{param.opts[0]}{value}", param.help or ""))
        with formatter.section("Options"):
            formatter.write_dl(rows, col_max=max(len(name) for name, _ in rows))


def _near(name: str, known: Iterable[str]) -> list[str]:
    import difflib

    words = {option.lstrip("-") for option in known}
    return [f"-{word}" for word in difflib.get_close_matches(name.lstrip("-").lower(), words, n=1, cutoff=0.6)]


def _may_be_bare(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and (param.is_flag or param.metavar == "BOOLEAN")


@click.command(
    "machine-server",
    cls=Command,
    context_settings={"help_option_names": ["-h", "-help", "--help"], "max_content_width": 118, "terminal_width": 118},
    epilog=(
        "Exit codes: 0 stopped as asked; 1 could not start, or failed; 2 wrong command line; 3 did not stop in time. "
        "SIGTERM or SIGINT stops everything in order within 60 s; a second one shortens that to 2 s."
    ),
)
@_value("config", _PATH, "FILE", "Configuration file: a full machine configuration, or cloud credentials.")
@_switch("debug", "Log at debug level, whatever the configuration says.")
@_value("log-file", _PATH, "FILE", "Write logs to FILE, with rotation, instead of standard output.")
@_switch("no-tls", "Serve without TLS even if the configuration or the cloud has a certificate.")
@_switch("allow-insecure-creds", "Accept API keys over connections without TLS from other computers.")
@_switch("allow-open-shell", "Without keys: let anybody who may call open shells and tunnels and copy files.")
@_switch("reveal-sensitive-config-diffs", "Log what changed in the configuration, secrets included.")
@_switch("version", "Print the version and exit.")
@_value("dump-resources", _PATH, "FILE", "Write every model with the JSON Schema of its attributes to FILE and exit.")
@_value("cpuprofile", _PATH, "FILE", "Profile the whole run (about half speed) and write it to FILE, for pstats.")
@_switch("network-check", "Run only the network checks and exit.")
@_switch("disable-mdns", "Do not announce the machine by multicast DNS.")
@_switch("ftdc", "Keep full-time diagnostic data: all statistics, each second.", default=True)
@_switch("output-telemetry", "Print metrics every 10 s, and spans; also to tracing.otlpendpoint.")
@_value("shareddir", _PATH, "DIRECTORY", "Take static files of the pages from DIRECTORY where it has them.")
@_switch("untrusted-env", "Refuse processes and shell access.")
@_switch("webprofile", "Serve profiles, tasks and the graph under /debug/, for this computer only.")
@click.option(
    "-hardware",
    "--hardware",
    envvar="MACHINE_HARDWARE",
    default="linux",
    metavar="FAMILY",
    help="What drivers run on: linux, gpiozero, sim, or module:function. [default: linux]",
)
@_switch("webrtc", "Accept WebRTC connections; not built yet, so connections are direct either way.")
def command(**options: Any) -> None:
    """Run one machine: its components, services and the server that offers them.

    Options take one dash or two; values follow after a space or '='. Those without a value here are switches: bare,
    =true or =false.
    """
    if options["version"] or options["dump_resources"] is not None or options["network_check"]:
        release()
    if options["version"]:
        from runtime.version import version

        click.echo(f"machine-server {version()}")
        return
    if options["dump_resources"] is not None:
        from runtime.dump import dump_resources

        try:
            dump_resources(options["dump_resources"])
        except OSError as error:
            _fail(f"{options['dump_resources']} cannot be written: {error.strerror}", EXIT_FAILED)
        return
    if options["network_check"]:
        from runtime.netcheck.command import main_check

        sys.exit(main_check(options["config"]))
    if options["config"] is None:
        _fail(NO_CONFIG, EXIT_USAGE)
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
    """The composition root. structlog would load rich and pygments for its own console, if they happen to be there."""
    modules: dict[str, Any] = sys.modules  # None under a name is the documented way to make an import fail
    hidden = "rich" not in modules
    if hidden:
        modules["rich"] = None
    gc.disable()  # what is imported stays: looking for garbage in it costs a tenth of the start, then and ever after
    try:
        from runtime.app import main
    finally:
        gc.freeze()
        gc.enable()
        if hidden:
            del modules["rich"]
    return main


def _folder(option: str, path: Path | None) -> Path | None:
    """The path as it was given; ends the program unless it is a folder that can be read."""
    if path is not None and not (path.is_dir() and os.access(path, os.R_OK | os.X_OK)):
        _fail(f"{option} {path}: is not a folder that this user can read", EXIT_FAILED)
    return path


def _ready_fd() -> int | None:
    """The descriptor that a parent wants to hear from when the port is open."""
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
    """Run machine-server with `arguments` (default: those of the process); exits with a code of this module."""
    hold()
    command.main(args=list(arguments) if arguments is not None else None, prog_name="machine-server")


if __name__ == "__main__":
    main()

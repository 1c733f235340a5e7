"""`machine hal install-rules`: installs or removes the udev rules."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from hal.inventory import INSTALLED_RULES, ROOT, rule_groups, shipped_rules

SUBSYSTEMS: Final = ("gpio", "pwm", "i2c-dev", "spidev", "tty", "usb", "video4linux", "input")
SETTLE: Final = 20  # seconds for udev to apply the rules


def install(*, dry_run: bool, user: str = "", root: Path = ROOT) -> None:
    """Create groups, install the rules and apply them to present devices. Skips steps that are already done."""
    _need_root(dry_run, root)
    if not shipped_rules():
        raise click.ClickException("the rules are not part of this installation: reinstall machine-runtime")
    if user and root == ROOT:
        _require_user(user)
    for group in rule_groups():
        if root == ROOT and not _exists(group):
            _run(dry_run, f"create group {group}", ["groupadd", "--system", group])
    changed = False
    for rules in shipped_rules():
        target = root / INSTALLED_RULES / rules.name
        if target.exists() and target.read_text() == rules.read_text():
            click.echo(f"{target} is up to date")
            continue
        changed = True
        _print_step(dry_run, f"write {target}")
        if not dry_run:
            _write(target, rules.read_text())
    _apply(dry_run, root, changed=changed)
    _members(dry_run, user, root)


def remove(*, dry_run: bool, root: Path = ROOT) -> None:
    """Remove the installed rules, and let udev remove its links."""
    _need_root(dry_run, root)
    changed = False
    for rules in shipped_rules():
        target = root / INSTALLED_RULES / rules.name
        if not target.exists():
            click.echo(f"{target} does not exist")
            continue
        changed = True
        _print_step(dry_run, f"remove {target}")
        if not dry_run:
            target.unlink()
    _apply(dry_run, root, changed=changed)


def _need_root(dry_run: bool, root: Path) -> None:
    if not dry_run and root == ROOT and os.geteuid() != 0:
        raise click.ClickException("this needs root: sudo machine hal install-rules (--dry-run shows what it would do)")


def _require_user(user: str) -> None:
    try:
        pwd.getpwnam(user)
    except KeyError:
        raise click.ClickException(f"there is no user {user!r}: create it, or correct --user") from None


def _exists(group: str) -> bool:
    try:
        grp.getgrnam(group)
    except KeyError:
        return False
    return True


def _write(target: Path, text: str) -> None:
    """Write a file atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=".machine-", delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    os.replace(file.name, target)


def _apply(dry_run: bool, root: Path, *, changed: bool) -> None:
    """Let udev read the rules and apply them to present devices."""
    if root != ROOT:
        return
    if not changed and not dry_run:
        click.echo("nothing changed")
    if shutil.which("udevadm") is None or not Path("/run/udev/control").exists():
        click.echo("udev is not running: the rules take effect when it starts")
        return
    _run(dry_run, "reload the rules of udev", ["udevadm", "control", "--reload"])
    matches = [f"--subsystem-match={subsystem}" for subsystem in SUBSYSTEMS]
    _run(dry_run, "apply them to present devices", ["udevadm", "trigger", "--action=change", *matches])
    _run(dry_run, "wait until that is done", ["udevadm", "settle", f"--timeout={SETTLE}"])


def _members(dry_run: bool, user: str, root: Path) -> None:
    if root != ROOT:
        return
    name = user or os.environ.get("SUDO_USER", "")
    missing = [group for group in rule_groups() if name and name != "root" and not _member(name, group)]
    if user and missing:
        _run(dry_run, f"make {user} a member of {', '.join(missing)}", ["usermod", "-aG", ",".join(missing), user])
        click.echo(f"{user} must log out and in again; services of that user must be restarted")
    elif missing:
        click.echo(f"{name} is not a member of {', '.join(missing)}: sudo usermod -aG {','.join(missing)} {name}")


def _member(user: str, group: str) -> bool:
    try:
        entry = grp.getgrnam(group)
        return user in entry.gr_mem or pwd.getpwnam(user).pw_gid == entry.gr_gid
    except KeyError:
        return False


def _print_step(dry_run: bool, step: str) -> None:
    click.echo(f"would {step}" if dry_run else step)


def _run(dry_run: bool, step: str, command: Sequence[str]) -> None:
    _print_step(dry_run, f"{step}: {' '.join(command)}")
    if dry_run:
        return
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SETTLE + 10)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise click.ClickException(f"{command[0]} failed: {error}") from None
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise click.ClickException(f"{' '.join(command)} failed: {reason}")

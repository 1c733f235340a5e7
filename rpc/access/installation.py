"""The line that installs machine-agent from a cloud. Pure.

It passes the key on the standard input of the shell, together with the installer: no argument and no environment
variable of a process contains it, so no other user of the computer sees it in the list of processes.
"""

from __future__ import annotations

import json
import re
from typing import Final

CA_FILE: Final = "machine-cloud-ca.pem"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_ADDRESS: Final = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def install_line(cloud: str, part: str, key_id: str, key: str, authorities_sha256: str = "") -> str:
    """Return the line for a part, to be pasted into a shell of a user who may use sudo.

    `cloud` is its address. `authorities_sha256` is the SHA-256 of the file /ca.pem of a cloud with its own authority:
    the line downloads that file without verification, and goes on only if it has this hash.

    ValueError for values that would need quoting: what the cloud creates never does.
    """
    for value, pattern in ((cloud, _ADDRESS), (part, _PLAIN), (key_id, _PLAIN), (key, _PLAIN)):
        if not pattern.fullmatch(value):
            raise ValueError("an address, an id or a key has characters that it cannot have")
    values = f"MACHINE_PART_ID={part} MACHINE_API_KEY_ID={key_id} MACHINE_API_KEY={key}"
    if not authorities_sha256:
        return f'(echo "{values}"; curl -fsSg {cloud}/install.sh) | sudo sh'
    if not _SHA256.fullmatch(authorities_sha256):
        raise ValueError("the hash of the authorities is not a SHA-256")
    file = f'"$HOME/{CA_FILE}"'
    return (
        f'curl -fsSkg {cloud}/ca.pem -o {file} && echo "{authorities_sha256}  $HOME/{CA_FILE}" | sha256sum -c && '
        f"(echo \"MACHINE_CA_FILE='$HOME/{CA_FILE}' {values}\"; "
        f"curl -fsSg --cacert {file} {cloud}/install.sh) | sudo sh"
    )


def user_data(line: str) -> str:
    """Return user-data for cloud-init that executes a line of `install_line` at the first boot.

    The network and the clock may not be ready then, so the line is repeated until machine-agent is installed, for some
    ten minutes. cloud-init writes the command into a script that only root can read.
    """
    words = line.replace("| sudo sh", "| sh")
    command = (
        "export HOME=/root; n=0; "
        f"until [ -e /opt/machine/launch/machine-agent/run ] || [ $n -gt 20 ]; do {words}; "
        "n=$((n + 1)); [ -e /opt/machine/launch/machine-agent/run ] || sleep 30; done"
    )
    return f"#cloud-config\nruncmd:\n  - {json.dumps(command)}\n"

"""The variables of machine-server's environment that its modules inherit. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

from schema import is_secret

VARIABLE: Final = "MACHINE_MODULE_ENVIRONMENT"
"""Names further variables for modules, separated by commas; `*` stands for any characters."""

INHERITED: Final = (
    # the user, the system and its language
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_*", "XDG_*",
    # networks: proxies and authorities
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    # displays, sound and buses of the desktop
    "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "PULSE_SERVER",
    # libraries, processors, cameras and robots
    "LD_LIBRARY_PATH", "PYTHON*", "VIRTUAL_ENV", "CUDA_*", "NVIDIA_*", "OMP_*", "OPENBLAS_*", "GST_*", "OPENCV_*",
    "GPIOZERO_*", "ROS_*", "AMENT_*", "RMW_*", "CYCLONEDDS_URI", "FASTRTPS_*",
    # of the protocol between the machine and its modules
    "VIAM_*",
)  # fmt: skip
"""Variables that modules inherit, unless their names are those of secrets; `*` stands for any characters."""


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of machine-server's environment for modules: INHERITED, and those that VARIABLE names.

    Others, such as credentials for a cloud provider, stay with machine-server. A module gets them by its `env`.
    """
    named = [pattern.strip() for pattern in environment.get(VARIABLE, "").split(",")]
    return {
        name: value
        for name, value in environment.items()
        if any(fnmatchcase(name, pattern) for pattern in named)
        or (not is_secret(name) and any(fnmatchcase(name, pattern) for pattern in INHERITED))
    }

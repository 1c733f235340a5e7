#!/bin/sh
# The entrypoint. machine-server sets MACHINE_PYTHON to its own Python, which has all libraries that this module needs.
exec "${MACHINE_PYTHON:-python3}" "$(dirname "$0")/smooth.py" "$@"

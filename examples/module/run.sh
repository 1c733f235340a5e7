#!/bin/sh
# The entrypoint. machine-server tells the Python that it runs on, which has all that this module needs.
exec "${MACHINE_PYTHON:-python3}" "$(dirname "$0")/smooth.py" "$@"

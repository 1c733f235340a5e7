"""What a machine counts of itself: process, modules, network, calls, resources. Read by FTDC and telemetry output."""

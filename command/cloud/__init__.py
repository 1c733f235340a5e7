"""`machine cloud`: manages machines, configurations, logs, data and keys of a cloud."""

"""The connection of a program on this computer to its cloud: address, configuration, logs, certificates, downloads."""

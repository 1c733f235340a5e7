"""Everything with which a program of this computer talks to its cloud: address, configuration, logs, certificates."""

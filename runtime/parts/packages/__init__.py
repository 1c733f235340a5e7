"""Packages of a machine: modules of the registry, models and other archives, downloaded, checked, unpacked and kept."""

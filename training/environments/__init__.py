"""Environments of training scripts: their requirements, and folders with the packages that these name."""

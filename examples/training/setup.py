"""Package of a training script, for clouds that run this file. machine-cloud reads requirements.txt instead."""

from setuptools import setup

setup(name="mean-color", version="1", packages=["model"], install_requires=["pillow>=10"])

"""Cameras and services that recognize things in pictures."""

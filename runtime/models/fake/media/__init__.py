"""Simulated cameras and audio devices."""

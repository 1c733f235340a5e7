"""Drives a base along a path on the ground: plans around obstacles, and follows by measured positions."""

"""Drives a base by GPS: to places, along routes, around zones."""

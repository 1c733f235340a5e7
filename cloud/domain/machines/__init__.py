"""Machines and their parts, their online state, and their logs."""

"""The command line `machine` for operators."""

"""Configuration of the operating system: the size of the journal, unattended upgrades, forwarding of the journal.

Only `apply_files`, `store`, `programs` and `apt` have effects: the other modules decide, from text to text.
"""

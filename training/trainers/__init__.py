"""Trainers: programs that engines run in processes of their own. The cloud imports nothing from here."""

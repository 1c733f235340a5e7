"""Text for people, on pages and in terminals. Pure."""

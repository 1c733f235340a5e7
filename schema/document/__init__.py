"""Types of the machine document, one module for each section."""

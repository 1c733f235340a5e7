"""Published calls for the registry of modules and packages."""

"""Tables, one file for each group: a migration step that is executed once. Released steps are never changed."""

"""Where the cloud keeps everything: transactions as plain functions over SQL, SQLite underneath."""

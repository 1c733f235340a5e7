"""Lists of many machines, their tags, bulk jobs and saved views."""

"""SQLite: a file, one writing thread per process, commits in groups."""

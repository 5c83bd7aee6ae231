"""One store for every SQL database: shared statements, and a dialect and a driver for each."""

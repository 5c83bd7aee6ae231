"""MariaDB, through asyncmy."""

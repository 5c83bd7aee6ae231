"""Statements: written for each dialect, loaded from the `.sql` files, and their values as rows."""

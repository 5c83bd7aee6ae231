"""Stores move rows; they are the only code that talks to a database."""

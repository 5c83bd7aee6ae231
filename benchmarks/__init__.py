"""Measures Duetime against what the machine, the database and the event loop could do at best."""

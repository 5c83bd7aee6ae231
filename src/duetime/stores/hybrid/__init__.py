"""A store made of several: jobs that are due soon live near, all others far."""

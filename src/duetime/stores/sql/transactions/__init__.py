"""Transactions that are not the store's own: those of callers, and those that handlers work in."""

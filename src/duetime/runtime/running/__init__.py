"""Runs claimed jobs: from the claim to the outcome."""

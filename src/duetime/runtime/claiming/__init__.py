"""Claims jobs: when, and how many."""

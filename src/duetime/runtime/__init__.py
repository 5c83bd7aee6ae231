"""The worker's services: fetch, execute, settle, maintain."""

"""What the HTTP API takes: a request beside a bare endpoint, and questions about a million jobs."""

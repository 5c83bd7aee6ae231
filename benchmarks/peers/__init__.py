"""Measures Duetime beside other schedulers and queues: the same work, each with its best documented settings."""

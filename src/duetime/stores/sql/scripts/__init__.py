"""The verbs of the store as scripts: generators that yield queries and know no driver."""

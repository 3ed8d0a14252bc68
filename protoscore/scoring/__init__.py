"""Stage: rows and scorers in, one table of scores out. Encoded once, kept by content, shared among processes and machines."""

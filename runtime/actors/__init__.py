"""Where user code runs: mailboxes, node actors, and the supervisor that gives them workers."""

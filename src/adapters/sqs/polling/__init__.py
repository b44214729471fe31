"""A worker that polls a queue itself. Threads are its own; clock, chance, and what talks to SQS are passed in."""

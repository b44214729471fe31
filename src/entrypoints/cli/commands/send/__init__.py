"""`onejob send`: send a file of jobs to a queue."""

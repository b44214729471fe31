"""`onejob work`: a worker that polls a queue."""

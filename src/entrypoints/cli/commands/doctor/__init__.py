"""`onejob doctor`: what is wrong with a worker's queue, table, function or file."""

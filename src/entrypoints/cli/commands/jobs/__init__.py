"""`onejob list`, `show` and `forget`: the records of jobs."""

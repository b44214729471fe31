"""`onejob run`: run a file of jobs on this machine."""

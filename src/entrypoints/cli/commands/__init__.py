"""A folder for each command: `command.py` has its options and its help, the other files its work."""

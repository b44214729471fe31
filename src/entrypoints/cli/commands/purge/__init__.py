"""`onejob purge`: delete records whose retention is over."""

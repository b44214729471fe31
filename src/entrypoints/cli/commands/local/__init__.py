"""`onejob local`: the deployed worker on this machine."""

"""`onejob demo`: one job, delivered twice, runs once."""

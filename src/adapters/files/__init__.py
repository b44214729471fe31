"""Files of jobs: their lines, and what runs them."""

"""Everything that runs beside something else: the seam to the interpreter's threads, and what is built on it."""

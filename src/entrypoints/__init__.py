"""The doors: each reads its settings, has the container build the worker, and maps outcomes to its transport."""

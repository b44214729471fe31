"""The rules of running a job's effect once: standard library only, no clock, no AWS."""

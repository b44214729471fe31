"""Bugs that a near test must find: one in the test file of the module that has the bug, and quick.

The other table, `tests/simulation/planted.py`, has the bugs that the simulator must find; a bug may stand in both. Here
`of_stores`, `of_messages` and `of_runs` hold the bugs, each with the tests that must go red; `near` plants them.
"""

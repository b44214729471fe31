"""A process that holds a lock of a file; run by test_suspended.py. Arguments: the file, the statements that lock it."""

import sqlite3
import sys

if __name__ == "__main__":
    path, *statements = sys.argv[1:]
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    print("held", flush=True)
    sys.stdin.readline()
    connection.execute("ROLLBACK")
    print("released", flush=True)

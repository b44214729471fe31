"""What cdk.json starts: the app, with the project's folder searched last: no file of it takes a library's place."""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    runpy.run_module("infra.app", run_name="__main__")

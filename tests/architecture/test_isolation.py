"""The domain and the memory store run on a bare interpreter: no site-packages, no AWS."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in [*SOURCE.glob("domain/**/*.py"), SOURCE / "adapters" / "stores" / "memory.py"]
)
PROBE = """
import sys
before = set(sys.modules)
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    __import__(name)
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(loaded - set(sys.stdlib_module_names)))
"""


def test_domain_and_memory_store_import_without_site_packages() -> None:
    assert "domain.service" in MODULES
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROBE, str(SOURCE), *MODULES], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["adapters", "domain"]


def test_the_domain_reads_no_clock_and_draws_no_number_of_its_own() -> None:
    """Time, chance, threads and identifiers are passed in, so that a simulator can own them."""
    forbidden = re.compile(r"^\s*(import|from) (time|random|threading|concurrent)\b|uuid4|\.now\(UTC\)|utcnow", re.M)
    seams = [
        *SOURCE.glob("domain/**/*.py"),
        *SOURCE.glob("adapters/sqs/**/*.py"),
        *SOURCE.glob("adapters/threads/*.py"),
    ]
    owners = [path.name for path in seams if forbidden.search(path.read_text())]
    assert sorted(owners) == ["crew.py", "seam.py"], "one measures the processor, the other is the seam to threads"


def test_every_module_says_in_its_first_line_why_it_exists() -> None:
    silent = [path.name for path in SOURCE.glob("**/*.py") if not path.read_text().startswith('"""')]
    assert silent == []

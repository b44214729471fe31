"""Sixty situations that people reported in public (cases.jsonl): each is a test named after its id, or says why not.

`REPLAYED` there is `Skipped` here. Where a case and the design differ, the design wins.
"""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent

DECLINED = {
    "A11": "the fence is a counter in the record, never a time; renewals keep it, and a takeover ends it",
    "A16": "a duplicate is deferred by visibility; waiting would hold a paid invocation",
    "C07": "a permanent failure is not cached: a later delivery runs again",
    "E06": "one key attribute; the persistence layer serves composite tables, the store does not need them",
    "E08": "durable functions start a new execution per retry of an event source mapping; not built upon",
    "E13": "starts no Step Functions execution",
}


def test_every_case_is_a_test_or_has_a_reason_why_not() -> None:
    known = {json.loads(line)["id"] for line in (HERE / "cases.jsonl").read_text().splitlines()}
    shown = {
        case_id
        for path in HERE.glob("test_?_*.py")
        for case_id in re.findall(r"def test_([A-E]\d\d)_", path.read_text())
    }
    assert shown | DECLINED.keys() == known
    assert not shown & DECLINED.keys()

"""What operator commands print: columns for pipes, frames for terminals, whatever a message brought."""

import sys
import time

import pytest

from entrypoints.cli.tables import print_table


def test_columns_are_as_wide_as_their_widest_cell_on_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["JOB", "B", "C"], [["x", "a\nb", 1], ["日本語", None, ""]])
    assert capsys.readouterr().out == "JOB     B    C\nx       a\ufffdb  1\n日本語  -    -\n"


def test_one_long_cell_is_whole_and_does_not_widen_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A message of 1 MB among a thousand: a gigabyte of blanks, where each line were padded."""
    began = time.thread_time()
    print_table(["JOB", "DETAIL", "MESSAGE"], [["1", "x" * 1_000_000, "m1"], *(["2", "y", "m2"] for _ in range(999))])
    assert time.thread_time() - began < 2, "seconds of the processor"
    printed = capsys.readouterr().out
    assert len(printed) < 1_500_000
    header, first, second, *rest = printed.splitlines()
    assert first == f"1    {'x' * 1_000_000}  m1"
    assert second.split() == ["2", "y", "m2"]
    assert second.index("m2") == header.index("MESSAGE")
    assert len(rest) == 998


def test_a_terminal_gets_a_frame(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(["JOB"], [["[bold]1"]])
    assert "│ [bold]1 │" in capsys.readouterr().out

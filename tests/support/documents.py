"""The `aws` lines of the documents: in fenced blocks of shell, and in code within a sentence."""

import re

from infra.bundle import PROJECT

AWS = re.compile(r"(?<![\w/.-])aws(?= [a-z-]|\(\))")
BLOCK = re.compile(r"^```(?:bash|sh|shell|console)\n(.*?)^```", re.M | re.S)
INLINE = re.compile(r"(?<!`)`(aws [a-z][^`\n]*)`(?!`)")
OTHERS = ("uv run ", "aws() ", "out() { uv run ")
"""Beginnings of lines that are no `aws` lines, or are typed by each test before the others."""


def pages_with_aws_lines() -> list[str]:
    """By path in the project."""
    folders = ("docs", "examples", "benchmarks")
    pages = [*PROJECT.glob("*.md"), *(page for folder in folders for page in (PROJECT / folder).rglob("*.md"))]
    return sorted(name for page in pages if aws_lines(name := page.relative_to(PROJECT).as_posix()))


def aws_lines(page: str) -> list[str]:
    """Of a page, in its order: the lines of each block that has an `aws` command, without those of other programs."""
    text = (PROJECT / page).read_text()
    found: list[str] = []
    for code in re.finditer(f"{BLOCK.pattern}|{INLINE.pattern}", text, re.M | re.S):
        block, inline = code.groups()
        if inline:
            found.append(inline)
        elif AWS.search(block):
            lines = block.replace("\\\n", " ").splitlines()
            found.extend(line for line in lines if line and not line.startswith((*OTHERS, "#")))
    return found

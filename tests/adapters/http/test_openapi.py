"""The OpenAPI document is valid, and says of each path what the door answers."""

import json
from typing import Any

from openapi_spec_validator import OpenAPIV31SpecValidator

from adapters.http.openapi import document
from adapters.http.problems import PROBLEMS, WRONG_METHOD

DOCUMENT: Any = document()


def test_it_is_valid() -> None:
    OpenAPIV31SpecValidator(json.loads(json.dumps(DOCUMENT))).validate()


def test_every_problem_is_described_and_every_one_of_a_path_is_listed() -> None:
    described = DOCUMENT["components"]["responses"]
    assert set(described) == {problem.name for problem in PROBLEMS}
    text = json.dumps(DOCUMENT["paths"])
    for problem in PROBLEMS:
        assert problem.title in described[problem.name]["description"]
        assert ("Retry-After" in described[problem.name].get("headers", {})) is problem.retryable
        listed = f"#/components/responses/{problem.name}" in text or f"`{problem.name}`" in text
        assert listed is (problem is not WRONG_METHOD), problem.name

"""What the domain's errors say: the reason, and the detail only where there is one."""

import pytest

from domain.errors import InvalidJobError, PermanentError


@pytest.mark.parametrize("error", [InvalidJobError, PermanentError])
def test_an_error_says_its_reason_and_its_detail(error: type[InvalidJobError] | type[PermanentError]) -> None:
    assert str(error("no_sku", "lines[0]: expected sku")) == "no_sku: lines[0]: expected sku"
    assert error("no_sku", "lines[0]").detail == "lines[0]"
    assert str(error("no_sku")) == "no_sku"
    assert error("no_sku").detail == ""

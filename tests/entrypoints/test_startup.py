"""What is built when Lambda starts a function is never searched for garbage."""

import gc
from collections.abc import Iterator

import pytest

from entrypoints.settings import SettingError
from entrypoints.startup import built_for_good


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_nothing_is_collected_while_it_is_built_and_what_was_built_is_set_aside() -> None:
    before = gc.get_freeze_count()
    assert not built_for_good(gc.isenabled)
    assert gc.isenabled()
    assert gc.get_freeze_count() > before


def test_an_error_gets_through_and_collecting_goes_on() -> None:
    def build() -> None:
        raise SettingError("A", "b", "c")

    with pytest.raises(SettingError):
        built_for_good(build)
    assert gc.isenabled()


def test_who_collects_nothing_goes_on_so() -> None:
    gc.disable()
    built_for_good(list)
    assert not gc.isenabled()

"""The store that `--store` names, opened so that what cannot be is said of that option, and closed in the end."""

from contextlib import ExitStack

from domain.errors import UnusableStoreError
from entrypoints.cli.errors import UnusableOptionError
from entrypoints.container import Container
from entrypoints.settings import SettingError
from entrypoints.store_registry import Backend


def open_store(container: Container, name: Backend, stack: ExitStack) -> None:
    """Have it made now. Raises `SettingError`, `UnusableStoreError`, `UnusableOptionError`."""
    try:
        store = container.store()
    except (SettingError, UnusableStoreError):
        raise
    except Exception as error:
        raise UnusableOptionError(f"--store {name}: {type(error).__name__}: {error}") from error
    stack.callback(store.close)

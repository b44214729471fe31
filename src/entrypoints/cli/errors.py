"""What a command cannot do, each with the text that the user gets and an exit status (`ending.py`)."""


class UnusableOptionError(Exception):
    """An option cannot be used; the text names it and says why."""


class NothingDoneError(Exception):
    """What was asked for could not be done; the text says why and what would help."""

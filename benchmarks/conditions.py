"""DynamoDB's expressions, as far as onejob and Powertools use them, turned into Python and compiled once each."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from types import CodeType
from typing import Any, Final

type Attribute = dict[str, Any]
type Item = dict[str, Attribute]

_TOKEN: Final = re.compile(r"#\w+|:\w+|\w+|<>|<=|>=|[()=<>,+]")
_WORDS: Final = {"AND": "and", "OR": "or", "NOT": "not", "=": "==", "<>": "!="}


class _Missing:
    """No attribute: equal to nothing, before and behind nothing."""

    def __eq__(self, other: object) -> bool:
        return False

    def __lt__(self, other: object) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__
    __hash__ = None  # type: ignore[assignment]


MISSING: Final = _Missing()


def holds(condition: str, item: Item, names: Mapping[str, str], values: Mapping[str, Attribute]) -> bool:
    """Whether a ConditionExpression is true of an item."""
    return bool(_evaluated(condition, item, names, values))


def updated(update: str, item: Item, names: Mapping[str, str], values: Mapping[str, Attribute]) -> Item:
    """The item after an UpdateExpression of SET and REMOVE."""
    sets, _, removes = update.removeprefix("SET ").partition(" REMOVE ")
    new = dict(item)
    for assignment in re.split(r", (?=#\w+ = )", sets):
        target, _, source = assignment.partition(" = ")
        new[names[target.strip()]] = _attribute(_evaluated(source, item, names, values))
    for target in filter(None, removes.split(", ")):
        new.pop(names[target.strip()], None)
    return new


def size(item: Item) -> int:
    """In bytes, as DynamoDB counts them."""
    return sum(len(name.encode()) + _value_size(*next(iter(value.items()))) for name, value in item.items())


def _value_size(kind: str, value: Any) -> int:
    match kind:
        case "S":
            return len(value.encode())
        case "N":
            return len(value.strip("-0").replace(".", "")) // 2 + 2
    return 1


def _evaluated(text: str, item: Item, names: Mapping[str, str], values: Mapping[str, Attribute]) -> Any:
    scope: dict[str, Callable[..., Any]] = {
        "attribute": lambda name: _plain(item.get(names[name])),
        "given": lambda name: _plain(values[name]),
        "attribute_exists": lambda value: value is not MISSING,
        "attribute_not_exists": lambda value: value is MISSING,
        "begins_with": lambda value, start: isinstance(value, str) and value.startswith(start),
        "if_not_exists": lambda value, other: other if value is MISSING else value,
    }
    return eval(_compiled(text), {"__builtins__": {}}, scope)  # the text is a client's of this very program


@cache
def _compiled(text: str) -> CodeType:
    words = []
    for token in _TOKEN.findall(text):
        if token[0] in "#:":
            words.append(f"{'attribute' if token[0] == '#' else 'given'}({token!r})")
        else:
            words.append(_WORDS.get(token, token))
    return compile(" ".join(words), text, "eval")


def _plain(value: Attribute | None) -> Any:
    if value is None:
        return MISSING
    kind, content = next(iter(value.items()))
    return Decimal(content) if kind == "N" else content


def _attribute(value: Any) -> Attribute:
    return {"N": str(value)} if isinstance(value, Decimal) else {"S": value}

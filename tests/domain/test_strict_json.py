"""Reading JSON: one text, one value, or a named reason."""

import tracemalloc

import pytest

from domain import strict_json
from domain.errors import InvalidJobError
from domain.strict_json import MAX_DEPTH, MAX_VALUES, Json, canonical, has_too_many_values, parse


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty_body"),
        (" \t\r\n", "empty_body"),
        ("\ufeff", "empty_body"),
        ("not json", "not_json"),
        ("X", "not_json"),
        ("\u00a0", "not_json"),
        ('{"a":1} x', "not_json"),
        ("{'a':1}", "not_json"),
        ('{"a":1,"a":2}', "duplicate_member"),
        ('{"x":{"a":1,"b":2,"a":1}}', "duplicate_member"),
        ('{"a":NaN}', "nan_number"),
        ('{"a":Infinity}', "infinite_number"),
        ('{"a":-Infinity}', "infinite_number"),
        ('{"a":1e999}', "number_overflow"),
        ('{"a":-1e999}', "number_overflow"),
        ('{"a":' + "9" * 5000 + "}", "number_overflow"),
        ('{"a":' * 101 + "1" + "}" * 101, "too_deep"),
        ("[" * 101 + "]" * 101, "too_deep"),
        ("[" * 100_000, "too_deep"),
        ("[" * 100_000 + "]" * 100_000, "too_deep"),
        (r'{"a":"\ud800"}', "lone_surrogate"),
        (r'{"\udfff":1}', "lone_surrogate"),
        (r'{"a":[{"b":["\ud83d"]}]}', "lone_surrogate"),
        ('{"a":"\ud800"}', "lone_surrogate"),
    ],
)
def test_what_readers_disagree_on_is_refused_with_its_own_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        parse(text)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a":x}', "not_json: at character 5"),
        ("[" * 101 + "1" + "]" * 101, "too_deep: more than 100 levels"),
        ("[" * 100_000, "too_deep: more than 100 levels"),
    ],
)
def test_a_refusal_says_where_or_how_much(text: str, said: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        parse(text)
    assert str(refused.value) == said


def test_whatever_the_decoder_raises_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("json.JSONDecoder.decode", explode)
    with pytest.raises(InvalidJobError, match="not_json: MemoryError"):
        parse("{}")


INEXACT = [
    "12345678901234567.89",
    "12345678901234567.01",
    "-12345678901234567.01",
    "0.1000000000000000055511151231257827",
    "0.10000000000000001",
    "0.30000000000000000001",
    "9007199254740993.0",
    "9007199254740993e0",
    "1.0000000000000000000000000000001",
    "1e-400",
    "-1e-400",
    "1e-99999999999999999999999999",
    "3e-324",
    "123456789012345678901e2",
    "0." + "1" * 100_000,
]


@pytest.mark.parametrize("digits", INEXACT, ids=lambda digits: digits[:40])
def test_a_number_that_a_double_does_not_hold_as_written_is_refused_by_name(digits: str) -> None:
    for text in (digits, f'{{"amount":{digits}}}', f'[[{{"a":[{digits}]}}]]'):
        with pytest.raises(InvalidJobError) as refused:
            parse(text)
        assert str(refused.value) == "inexact_number: more digits than a double holds: send it as a string"


@pytest.mark.parametrize(
    ("digits", "value"),
    [
        ("0.1", 0.1),
        ("1.10", 1.1),
        ("1234567890123.45", 1234567890123.45),
        ("0.1234567890123456", 0.1234567890123456),
        ("1.7976931348623157E+308", 1.7976931348623157e308),
        ("5e-324", 5e-324),
        ("2.2250738585072014e-308", 2.2250738585072014e-308),
        ("9007199254740992.0", 9007199254740992),
        ("9007199254740993", 9007199254740993),
        ("1e22", 1e22),
        ("0.0", 0),
        ("-0.0", 0),
        ("0e-99999999999999999999999999", 0),
        ("0.00000000000000000000000000", 0),
        ("1" + "0" * 30 + "e-30", 1),
        ("9" * 4000, int("9" * 4000)),
    ],
    ids=lambda one: str(one)[:30],
)
def test_a_number_that_is_held_as_written_is_read(digits: str, value: Json) -> None:
    assert parse(digits) == value


def test_a_refusal_never_repeats_what_was_sent() -> None:
    with pytest.raises(InvalidJobError) as refused:
        parse('{"card": "4111111111111111", }')
    assert "4111" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":[1,2.5,"x",true,null]}', {"a": [1, 2.5, "x", True, None]}),
        ('\ufeff{"a":1}', {"a": 1}),
        (r'"\ud83d\ude00"', "😀"),
        ("1e308", 1e308),
        ("[" * (MAX_DEPTH) + "]" * (MAX_DEPTH), None),
    ],
)
def test_sound_json_is_read(text: str, value: Json) -> None:
    assert value is None or parse(text) == value
    parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": {"d": 1, "c": [2, 1]}}, '{"a":{"c":[2,1],"d":1},"b":1}'),
        ({"n": 1.0, "m": 1e2, "z": -0.0, "h": 0.1}, '{"h":0.1,"m":100,"n":1,"z":0}'),
        ({"é": "ü"}, '{"é":"ü"}'),
        ([1e20, 1e21, 1e300, 10**25], "[100000000000000000000,1e+21,1e+300,10000000000000000000000000]"),
        ([True, False, None, ""], '[true,false,null,""]'),
    ],
)
def test_a_value_has_one_canonical_text(value: Json, text: str) -> None:
    assert canonical(value) == text


def test_what_is_not_json_has_no_canonical_text() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"a": float("nan")})


OVER = MAX_VALUES + 1


@pytest.mark.parametrize(
    "text",
    [
        "[" + "1," * OVER + "1]",
        "[" + '{"a":1},' * OVER + "1]",
        "[" + "[]," * OVER + "1]",
        '{"a":[' + '"x",' * OVER + "1]}",
        r'["\"",' + "[1]," * OVER + "1]",
        '["' + "," * OVER + '",' + "1," * OVER + "1]",
    ],
    ids=["numbers", "objects", "empty lists", "strings", "behind a quote", "behind a string of commas"],
)
def test_a_body_of_too_many_values_is_refused_before_it_is_decoded(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "_READER", None)
    with pytest.raises(InvalidJobError) as refused:
        parse(text)
    assert str(refused.value) == f"too_many_values: more than {MAX_VALUES}"


@pytest.mark.parametrize("text", ['"' + ",[{" * OVER + '"', '"' + r",[\"" * OVER + '"', '"' + "," * OVER], ids=len)
def test_what_stands_in_a_string_is_no_value(text: str) -> None:
    assert not has_too_many_values(text)


def test_canonical_text_takes_no_second_tree() -> None:
    value: Json = [{"a": number} for number in range(20_000)]
    tracemalloc.start()
    canonical(value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000 * 100

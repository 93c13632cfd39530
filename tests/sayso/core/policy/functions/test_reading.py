"""Shorthands in the text of a condition."""

import pytest

from sayso.core.policy.conditions import ConditionError, compile_condition
from sayso.core.policy.functions.reading import MOST_VARIABLES, list_text_tests, read_words
from sayso.core.policy.functions.shorthands import SHORTHANDS


@pytest.mark.parametrize(
    ("expression", "labels"),
    [
        ("host(args.url) == 'x'", ["host(args.url)"]),
        ("'rm' in shell(args.command).programs", ["shell(args.command).programs"]),
        ("shell(args.c).pipes > 1 || shell(args.c).pipes < 5", ["shell(args.c).pipes"]),
        ("sql(args.q, 'mysql').writes", ['sql(args.q, "mysql").writes']),
        ("within(args.files[0], constants.root)", ["within(args.files[0], constants.root)"]),
        ("has_mail(args)", ["has_mail(args)"]),
        ("has_mail(context['a-b'].c)", ["has_mail(context.a-b.c)"]),
        ("leaves ( args . a ) .exists(x, x == 'y')", ["leaves(args.a)"]),
        ("args.a == \"host(args.url)\" || args.b == r'shell(args.c).programs'", []),
        ("args.a == 1 // don't host(args.url)\n|| has_card(args.b)", ["has_card(args.b)"]),
        ("args.host(args.url) == 1", []),
        ("args.shell == 1 && args.path.a == 2", []),
    ],
)
def test_read_words_finds_the_shorthands(expression: str, labels: list[str]) -> None:
    reading = read_words(expression)
    assert [one.label for one in reading.variables] == labels
    assert len(reading.text) == len(expression)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("shell(args.command)", "has several values; read one of them: .programs"),
        ("shell(args.command).program == 1", "has no 'program'; did you mean 'programs'?"),
        ("shel(args.command).programs == 1", "undeclared reference to 'shel'"),
        ("host(url) == 'x'", "reads an argument of the call, such as host(args.url)"),
        ("args.urls.all(u, host(u) == 'x')", "give it the whole list"),
        ("host(args.url.trim()) == 'x'", "takes an argument as it is"),
        ("host(args.urls[args.n]) == 'x'", "takes an argument as it is"),
        ("host(args.url, '!') == 'x'", "names no schemes"),
        ("host(args.url == 'x'", "is not closed"),
        ("within(args.file)", 'write within(args.file, "/srv/data")'),
        ("within(args.file, args.root)", "is a text in quotes or a constant"),
        ("within(args.file, 'data')", "is not absolute"),
        ("sql(args.q, 'postgress').writes", "there is no database 'postgress'"),
        ("args.c in lists[args.n]", "write which one, as in lists.NAME"),
        ("size(constants) == 1", "write which one, as in constants.NAME"),
        ("'rm' == shell(args.command).programs", "no matching overload"),
        ("sql(args.q).statements == 'x'", "no matching overload"),
        ("_b0 && has_card(args.a)", "undeclared reference to '_b0'"),
    ],
)
def test_wrong_shorthands_are_faults(expression: str, words: str) -> None:
    with pytest.raises(ConditionError) as caught:
        compile_condition(expression)
    assert words in str(caught.value)


def test_faults_have_the_place_of_the_original_text() -> None:
    with pytest.raises(ConditionError) as caught:
        compile_condition("has_card(args.a) &&\n  'rm' in shell(args.command).programs && foo")
    assert (caught.value.line, caught.value.column) == (2, 43)
    with pytest.raises(ConditionError) as caught:
        compile_condition("has_card(args.a) &&\n  shell(args.command).x == 1")
    assert (caught.value.line, caught.value.column) == (2, 23)


def test_condition_reads_a_limited_number_of_values() -> None:
    many = " && ".join(f"has_card(args.a{number})" for number in range(MOST_VARIABLES + 1))
    with pytest.raises(ConditionError, match="more than 32 computed values"):
        compile_condition(many)
    compile_condition(many.rpartition(" && ")[0])


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("args.command.matches('rm')", [("args.command", "matches")]),
        ("args.command.lowerAscii().trim().contains('rm')", [("args.command", "contains")]),
        ("args['command'].startsWith('git')", [("args.command", "startsWith")]),
        ("matches(args.command, 'rm')", [("args.command", "matches")]),
        ("args.items[0].command.split(' ')[0] == 'git'", [("args.items[0].command", "split")]),
        ("claimed.a.endsWith('x') || args.b == 'args.c.matches(1)'", [("claimed.a", "endsWith")]),
        ("args.command == 'ls' && shell(args.command).calls.exists(one, one.startsWith('git'))", []),
        ("x.args.command.matches('rm')", []),
    ],
)
def test_list_text_tests_finds_searched_arguments(expression: str, found: list[tuple[str, str]]) -> None:
    assert list(list_text_tests(expression)) == found


def test_names_of_lists_and_constants_are_listed() -> None:
    reading = read_words(
        "args.a in lists.eu && args.b in lists['blocked'] && args.c > constants.limit && args.lists == 1"
    )
    assert (reading.lists, reading.constants) == (("eu", "blocked"), ("limit",))
    assert read_words("args.a == 'lists.eu'").is_plain


@pytest.mark.parametrize("name", SHORTHANDS)
def test_every_shorthand_compiles_as_its_usage_says(name: str) -> None:
    shorthand = SHORTHANDS[name]
    for field in shorthand.fields or [""]:
        call = f"{name}{shorthand.usage}{f'.{field}' if field else ''}"
        compile_condition(f"{call} == {call}")

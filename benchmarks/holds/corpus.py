"""Slow inputs for every reader, renderer and page: texts, arguments and rules that are built to cost much."""

import json
from collections.abc import Iterator
from typing import Any

MOST_BYTES = 262_144
"""The most bytes that a body may have."""

MOST_ALIKE = 50
"""The most calls of a request, and the most suspensions whose rows a page fetches at once."""

SQL = {
    "indexes": "select a" + "[1]" * 2_600,
    "a short text with indexes": "select a" + "[1]" * 130,
    "open indexes": "select a" + "[1" * 3_900,
    "joins": "select * from a" + " join a" * 1_100,
    "few joins": "select * from a" + " join a" * 20,
    "parentheses": "select " + "(" * 3_900 + "1" + ")" * 3_900,
    "columns": "select " + "a," * 3_900 + "a",
    "casts": "select a" + "::a" * 2_600,
    "statements": "select 1;" * 880,
    "types": "select cast(a as " + "array<" * 1_300,
    "operators": "select " + "x->" * 2_600 + "x",
    "quotes": "select '" + "''" * 3_900,
    "comments": "select 1 " + "/*" * 3_900,
    "cases": "select " + "case when " * 780,
}
SHELL = {
    "commands": "a;" * 1_990,
    "pipes": "a|" * 1_990,
    "substitutions": "$(" * 1_990,
    "quoted substitutions": '"$(' * 1_300,
    "redirections": "<a " * 1_300,
    "expansions": "${a" * 1_300,
    "here-documents": "<<a " * 990,
    "functions": "f() " * 990,
    "a list of words": [["a" * 4_000] * 50],
}
MAIL = {
    "quotes": '"' * 9_990,
    "commas": "," * 9_990,
    "names": "a " * 4_990,
    "routes": "<@a," * 2_490,
    "both quotes": "\"'" * 4_990,
    "addresses": "a@b.ch," * 1_400 + "a@b.ch",
    "many texts": ['"' * 100] * 1_200,
}
URL = {
    "dots": "https://a.example/" + "../" * 1_300,
    "labels": "https://" + "a." * 1_900 + "example/",
    "escapes": "https://a.example/" + "%61" * 1_300,
    "many URLs": ["https://a.example/" + "a/" * 20] * 4_000,
}
PATH = {"dots": "a/../" * 790, "names": "a/" * 1_990, "blanks": " " * 3_990}
SEARCHED = {
    "numbers": "1 " * 49_990,
    "groups of digits": "12345678 " * 11_000,
    "accounts": "DE89 " * 19_990,
    "schemes": "a://" * 24_990,
    "compatibility signs": "\ufdfa" * 49_990,
    "accents": "e\u0301" * 49_990,
    "keys": {f"k{number}": number for number in range(9_000)},
    "lists": [[]] * 18_000,
}
LOOPS = {
    "numbers": {"x": [*range(9_000)], "s": "a" * 100_000},
    "texts": {"x": ["a" * 20] * 5_000, "s": "a" * 60_000},
    "objects": {"x": [{"a": 1}] * 4_000, "s": "é" * 60_000},
}

RULES = """\
version: 1
default: request_approval
rules:
  - {id: sql, tool: t_sql, action: allow, when: '!sql(args.v, "postgres").writes'}
  - {id: tsql, tool: t_sql, action: allow, when: '!sql(args.v, "tsql").writes'}
  - {id: anysql, tool: t_sql, action: allow, when: 'sql(args.v).tables.all(t, t == "a")'}
  - {id: shell, tool: t_shell, action: allow, when: 'shell(args.v).programs.all(p, p in ["ls"])'}
  - {id: mail, tool: t_mail, action: allow, when: 'mail(args.v).domains.all(d, d == "b.ch")'}
  - {id: http, tool: t_url, action: allow, when: 'http(args.v).path.startsWith("/public")'}
  - {id: host, tool: t_url, action: allow, when: 'host(args.v) == "b.ch"'}
  - {id: path, tool: t_path, action: allow, when: 'path(args.v).folder == "/a" || within(args.v, "/b")'}
  - {id: card, tool: t_search, action: deny, when: 'has_card(args) || has_iban(args)'}
  - {id: secret, tool: t_search, action: deny, when: 'has_secret(args) || has_mail(args)'}
  - {id: leaves, tool: t_search, action: deny, when: 'leaves(args).exists(x, x.lowerAscii().contains("b"))'}
  - {id: pairs, tool: t_loop, action: deny, when: 'args.x.exists(a, args.x.exists(b, a == b && string(a) == "z"))'}
  - {id: match, tool: t_loop, action: deny, when: 'args.x.exists(a, args.s.matches("^(a|aa)*b$"))'}
  - {id: text, tool: t_loop, action: deny, when: 'args.x.exists(a, args.s.replace("a", "bb").contains("c"))'}
  - {id: split, tool: t_loop, action: deny, when: 'args.s.split("a").size() > 500000'}
  - {id: plans, tool: "plan_*", action: request_approval, mandates: {longest: 7d}}
  - {id: grants, tool: "grant_*", action: request_approval, grants: {longest: 7d, count: 100}}
"""

READERS: dict[str, dict[str, Any]] = {
    "t_sql": SQL,
    "t_shell": SHELL,
    "t_mail": MAIL,
    "t_url": URL,
    "t_path": PATH,
    "t_search": SEARCHED,
}


def list_reader_calls() -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield the name, the tool and the arguments of calls for each reader: one call, and as many as fit a request."""
    for tool, values in READERS.items():
        for name, value in values.items():
            yield f"{tool[2:]}: {name}", tool, [{"v": value}]
            several = min(50, (MOST_BYTES - 100) // (60 + len(json.dumps({"v": value}, ensure_ascii=False).encode())))
            if several > 1:
                yield f"{tool[2:]}: {several} calls with {name}", tool, [{"v": value}] * several
    for name, args in LOOPS.items():
        yield f"condition: {name}", "t_loop", [args]


def list_pages() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the name, the tool and the arguments of calls whose page is shown, for each renderer and kind of text."""
    texts = {
        "Hebrew letters and digits": "\u05d01" * 60_000,
        "letters of two scripts": "a\u05d0" * 60_000,
        "accents": "a\u0301" * 60_000,
        "zero-width signs": "a\u200b" * 40_000,
        "joined emoji": "\u2194\u200d" * 40_000,
        "blank lines": ("x\n\n\n\n" + " " * 20) * 8_000,
        "line breaks": "\n" * 120_000,
        "dates in Hebrew": "\u05d0 1-2-3/4 " * 20_000,
        "fractions": "1.1," * 50_000,
        "separators": "a\uff0f" * 60_000,
    }
    for name, text in texts.items():
        yield f"page: {name}", "note", {"text": text}
    for tool, key, values in (
        ("run_shell", "command", SHELL),
        ("query_sql", "query", SQL),
        ("send_mail", "to", MAIL),
        ("http_request", "url", URL),
    ):
        for name, value in values.items():
            yield f"page: {tool} with {name}", tool, {key: value, "subject": "a", "method": "post"}
    long: dict[str, tuple[str, dict[str, Any]]] = {
        "shell": ("run_shell", {"command": "rm -rf /a;" * 1_990}),
        "long shell": ("run_shell", {"command": "rm -rf /a;" * 20_000}),
        "SQL": ("query_sql", {"query": "delete from a where b or c;" * 740}),
        "long SQL": ("query_sql", {"query": "select '" + "a''" * 60_000}),
        "mail": ("send_mail", {"to": "a@b.ch," * 20_000, "subject": "a", "body": "b"}),
        "patch": ("edit_file", {"path": "a", "diff": "@@ -1 +1 @@\n" + "+a\n-b\n" * 30_000}),
        "replacement": ("edit_file", {"path": "a", "old": "a\n" * 40_000, "new": "b\n" * 40_000}),
        "payment": ("pay", {"amount": 5, "currency": "EUR", "to": ["DE89370400440532013000"] * 8_000}),
        "accounts": ("pay", {f"iban{number}": "DE89370400440532013001" for number in range(5_000)}),
        "many values": ("note", {f"k{number}": number for number in range(15_000)}),
        "many texts": ("note", {"x": [f"\u05d0{number}" for number in range(15_000)]}),
        "depth": ("note", {"x": _nest(28, 500)}),
    }
    for name, (tool, args) in long.items():
        yield f"page: {name}", tool, args


def list_alike() -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield the name, the tool and the arguments of many calls that pages show in one table: each as long as fits."""
    numbers = range(MOST_ALIKE)
    places = [f"k{place}" for place in range(140)]
    yield "alike: many columns", "note", [dict.fromkeys(places, number) for number in numbers]
    yield "alike: same values", "note", [{"n": number, **dict.fromkeys(places, 1)} for number in numbers]
    yield "alike: long words", "note", [{"n": number, "text": "\u05d01" * 300} for number in numbers]
    yield "alike: payments", "pay", [{"amount": number, "currency": "EUR", "to": "a" * 900} for number in numbers]


def list_plans() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield plans, permitted and refused, with as many limits and as long texts as a body holds."""
    limits = {f"args.a{number}": "x" * 200 for number in range(20)}
    lists = {f"args.b{number}": ["y" * 20] * 20 for number in range(20)}
    several = [{"tool": f"plan_{number}", "definition": {}, "equal": limits, "one_of": lists} for number in range(12)]
    yield "plan: many limits", {"for_s": 600, "count": 5, "tools": several}
    refused = [{**one, "tool": f"other_{number}"} for number, one in enumerate(several)]
    yield "plan: refused", {"for_s": 600, "count": 5, "tools": refused}
    free = [f"args.c{number}" for number in range(50)]
    tools = [{"tool": f"plan_{number}", "definition": {}, "equal": limits, "free": free} for number in range(50)]
    yield "plan: many tools", {"for_s": 600, "count": 5, "tools": tools}
    schema = {"properties": {f"p{number}": {"type": "string"} for number in range(4_000)}}
    described = {"tool": "plan_a", "definition": {"parameters": schema}, "equal": limits}
    yield "plan: a large definition", {"for_s": 600, "count": 5, "tools": [described]}
    text = "\u05d01" * 9_000
    worded = {"tool": "plan_a", "definition": {}, "equal": {"args.a": text}}
    yield "plan: long words", {"for_s": 600, "count": 5, "tools": [worded]}


def _nest(levels: int, width: int) -> Any:
    value: Any = [0] * width
    for _ in range(levels):
        value = [value, *range(width)]
    return value

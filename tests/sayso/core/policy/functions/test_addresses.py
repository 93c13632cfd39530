"""URLs and mail addresses, and ones that programs read differently."""

from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.addresses import read_hosts, read_mail, read_url
from sayso.core.policy.rules import Action, PolicyRule, RuleCondition


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "path"),
    [
        ("https://example.com", "https", "example.com", 443, "/"),
        ("HTTP://Example.COM:8080/a/b?x=1#y", "http", "example.com", 8080, "/a/b"),
        ("https://example.com./a", "https", "example.com", 443, "/a"),
        ("https://user:secret@example.com/", "https", "example.com", 443, "/"),
        ("https://good.com@evil.com/", "https", "evil.com", 443, "/"),
        ("https://evil.com?good.com/", "https", "evil.com", 443, "/"),
        ("https://evil.com#@good.com/", "https", "evil.com", 443, "/"),
        ("https://example.com/a/../b/c/./d", "https", "example.com", 443, "/b/c/d"),
        ("https://example.com/admin//../public/x", "https", "example.com", 443, "/admin/public/x"),
        ("https://example.com/admin//%2E%2e/public/x", "https", "example.com", 443, "/admin/public/x"),
        ("https://example.com/a/b/../../..//../c/", "https", "example.com", 443, "/c"),
        ("https://example.com/a/", "https", "example.com", 443, "/a"),
        ("https://example.com/../../admin", "https", "example.com", 443, "/admin"),
        ("https://example.com/%61dmin", "https", "example.com", 443, "/admin"),
        ("https://example.com/a%20b", "https", "example.com", 443, "/a b"),
        ("http://127.0.0.1/", "http", "127.0.0.1", 80, "/"),
        ("http://[::1]/", "http", "::1", 80, "/"),
        ("http://[::ffff:127.0.0.1]/", "http", "127.0.0.1", 80, "/"),
        ("http://[0:0:0:0:0:0:0:1]:81/", "http", "::1", 81, "/"),
        ("http://xn--bcher-kva.example/", "http", "xn--bcher-kva.example", 80, "/"),
    ],
)
def test_read_url_splits_a_url(url: str, scheme: str, host: str, port: int, path: str) -> None:
    has_user = "@" in url.split("#", maxsplit=1)[0]
    expected = {"scheme": scheme, "host": host, "port": port, "path": path, "has_user": has_user}
    assert read_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "example.com",
            "//example.com/",
            "https:/example.com",
            "https:example.com",
            "https://",
            "https:///a",
            None,
            5,
        ),
        *(
            "https://good.com\\@evil.com/",
            "https://evil.com\\.good.com",
            "https://exa\tmple.com",
            "https://exa\nmple.com",
        ),
        *(" https://example.com", "https://a@b@evil.com/", "https://ex%61mple.com/", "https://bücher.example/", ["x"]),
        *(
            "https://example.com:99999/",
            "https://example.com:80a/",
            "http://0177.0.0.1/",
            "http://127.0.0.010/",
            "http://127.0.0.09/",
            "http://127.0300/",
            "http://010000000/",
            "http://0xzz.1/",
            "http://0x1_0.1/",
            "http://4294967296/",
            "http://127.0.65536/",
            "http://[64:ff9b:1::7f00:1]/",
        ),
        *(
            "http://1.2.3.4.5/",
            "http://[::1%eth0]/",
            "http://[v1.x]/",
            "https://a..b/",
            "https://-a.com/",
        ),
        *(
            "https://example.com/%2e%2e%2fadmin",
            "https://example.com/%252e",
            "https://example.com/open/..;/admin",
            "https://example.com/open/.%2e%3bx=1/admin",
            "https://example.com/.;/admin",
            "https://example.com/%00",
            "https://a.com/%zz",
        ),
        *("https://example.com//admin", "https://example.com/a//b", "https://example.com//"),
        *("file://example.com/etc/passwd", "ftp://example.com/", "ws://example.com/", "ssh://example.com/a"),
        *("https://example.com/%ff", "https://exam\u200bple.com", "https://example.com/\u2028", "javascript:alert(1)"),
        *("data:text/html,x", "https://" + "a" * 5000, "https://例え.jp/", "https://example.com\uff0f.evil.com"),
    ],
)
def test_read_url_refuses_what_programs_read_differently(url: Any) -> None:
    with pytest.raises(Uncomputable):
        read_url(url)


@pytest.mark.parametrize(
    ("host", "reached"),
    [
        ("[::ffff:10.0.0.1]", "10.0.0.1"),
        ("[::ffff:0:10.0.0.1]", "10.0.0.1"),
        ("[::10.0.0.1]", "10.0.0.1"),
        ("[64:ff9b::10.0.0.1]", "10.0.0.1"),
        ("[2002:a00:1::]", "10.0.0.1"),
        ("[2001:0:4136:e378:8000:63bf:3fff:fdd2]", "192.0.2.45"),
        ("[::1]", "::1"),
        ("[::]", "::"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("0x7f.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7F000001", "127.0.0.1"),
        ("0x000000000A9FEA9FE", "169.254.169.254"),
        ("0x" + "0" * 40 + "7f000001", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0xa.0x0.0x0.0x1", "10.0.0.1"),
        ("00.0.0.01", "0.0.0.1"),
        ("0377.1.1.1", "255.1.1.1"),
    ],
)
def test_read_url_unwraps_an_address_to_the_one_it_reaches(host: str, reached: str) -> None:
    assert read_url(f"http://{host}/")["host"] == reached


def test_other_schemes_are_read_where_the_rule_names_them() -> None:
    url = "file://api.partner.example/etc/passwd"
    for read in (read_url, read_hosts):
        with pytest.raises(Uncomputable, match="its scheme is file, not http or https"):
            read(url)
    assert read_hosts(url, "file") == read_hosts(url, "any") == "api.partner.example"
    assert read_url("gopher://x_y.example/", "ftp, gopher")["port"] == 0
    assert read_hosts(["ftp://a.example", "https://b.example"], "ftp https") == ["a.example", "b.example"]
    for faulty in ("", " ", "ht tp!", 5):
        with pytest.raises(Uncomputable, match="names no schemes"):
            read_url("https://a.example", faulty)


def test_a_rule_about_a_partners_host_asks_about_a_file_there() -> None:
    rule = PolicyRule(
        rule_id="partner",
        action=Action.ALLOW,
        condition=RuleCondition(when='host(args.url) == "api.partner.example"'),
    )
    rules = Policy(rules=(rule,), default=Action.DENY)

    def judge(url: str) -> Action:
        return rules.judge(PolicyEvent(run_id="r", agent="a", tool_name="fetch", tool_args={"url": url})).action

    assert judge("https://api.partner.example/v1") is Action.ALLOW
    assert judge("file://api.partner.example/etc/passwd") is Action.REQUEST_APPROVAL


def test_read_hosts_of_one_url_and_of_a_list() -> None:
    assert read_hosts("https://A.example/x") == "a.example"
    assert read_hosts(["https://a.example/x", "http://b.example"]) == ["a.example", "b.example"]
    with pytest.raises(Uncomputable):
        read_hosts(["https://a.example", "b.example"])


@pytest.mark.parametrize(
    ("value", "addresses"),
    [
        ("anna@example.com", ["anna@example.com"]),
        ("Anna <Anna@Example.COM>", ["anna@example.com"]),
        ('"Doe, Anna" <anna@example.com>, ben@example.org', ["anna@example.com", "ben@example.org"]),
        (
            ["anna@example.com", "Ben <ben@example.org>, c@d.example"],
            ["anna@example.com", "ben@example.org", "c@d.example"],
        ),
        ('"anna@good.com" <ben@evil.com>', ["ben@evil.com"]),
        ("anna+tag@example.com", ["anna+tag@example.com"]),
    ],
)
def test_read_mail_lists_addresses(value: Any, addresses: list[str]) -> None:
    found = read_mail(value)
    assert found["addresses"] == addresses
    assert found["count"] == len(addresses)
    assert found["domains"] == [*dict.fromkeys(one.partition("@")[2] for one in addresses)]


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "anna",
            "anna@",
            "@example.com",
            [],
            None,
            5,
            ["a@b.example", 5],
            "a@b@c.example",
            '"a@good.com"@evil.com',
            "eve%evil.com@good.com",
            "evil.com!eve@good.com",
        ),
        *("a@good.com\nBcc: b@evil.com", "a@good.com\r\nBcc: b@evil.com", "a@good.com (c) b@evil.com", "a@[127.0.0.1]"),
        *(
            "=?utf-8?q?a=40evil=2Ecom?= <a@good.com>",
            "team: a@x.example, b@y.example;",
            "a@bücher.example",
            "a@good.com>",
        ),
        *("a@good.com b@evil.com", "<a@good.com", "a@exam\u200bple.com", "a@good.com\u2028b@evil.com", "ａ@x.example"),
        *("a@good.com;b@evil.com", "a\\@good.com@evil.com", "x" * 20_000, ["a@b.example"] * 1001, "a b@good.com"),
    ],
)
def test_read_mail_refuses_what_programs_read_differently(value: Any) -> None:
    with pytest.raises(Uncomputable):
        read_mail(value)


_PIECES = [
    *(
        "http",
        "https",
        "://",
        "//",
        ":",
        "/",
        "@",
        "?",
        "#",
        "good.com",
        "evil.com",
        ".",
        "..",
        "[",
        "]",
        "::1",
        "80",
        "%",
    ),
    *(
        "2e",
        "2f",
        "40",
        "a",
        "user",
        "\\",
        ";",
        "=",
        "&",
        " ",
        "\t",
        "0x7f",
        "127.0.0.1",
        "1",
        "-",
        "_",
        "xn--a",
        "é",
        ",",
    ),
]


@settings(max_examples=500, deadline=None)
@given(pieces=st.lists(st.sampled_from(_PIECES), max_size=10))
def test_other_parsers_agree_about_the_host(pieces: list[str]) -> None:
    url = "https://" + "".join(pieces)
    try:
        found: Any = read_url(url)
    except Uncomputable:
        return
    if not found["host"].replace(".", "").isdigit() and ":" not in found["host"]:
        assert found["host"] == (urlsplit(url).hostname or "").removesuffix(".")
        assert found["host"] == httpx.URL(url).raw_host.decode().removesuffix(".")
    assert found["port"] == (httpx.URL(url).port or 443)


@given(text=st.text(max_size=60))
def test_reading_addresses_raises_nothing_else(text: str) -> None:
    for read in (read_url, read_mail):
        for value in (text, f"https://{text}", f"{text}@example.com", f"a@example.com{text}"):
            try:
                read(value)
            except Uncomputable:
                continue

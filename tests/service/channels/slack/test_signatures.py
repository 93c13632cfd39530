"""Requests whose signature does not hold are refused: by the verifier, by slack-sdk's, and by the running app."""

import gzip
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlencode

import pytest
from slack_sdk.signature import Clock, SignatureVerifier

from sayso.core.clock import now_ms
from sayso.errors import InvalidSignature
from service.channels.slack.payloads import SIGNATURE, TIMESTAMP, check_headers, sign_request, verify_body
from tests.fakes.slack import SIGNING_SECRET, form_of, sign
from tests.service.channels.slack.worlds import NAME, SlackWorld
from tests.service.worlds import read_store

NOW_S = 1_795_255_307
OTHER = "0123456789abcdef0123456789abcdef"
BODY = form_of({"type": "block_actions", "team": {"id": "T0TEAM"}, "text": "caf\u00e9 + 1 & 2"})
AT = str(NOW_S)
GOOD = sign_request(SIGNING_SECRET, AT, BODY)


class Case(NamedTuple):
    """A request: all values of both headers, and the body."""

    name: str
    timestamps: Sequence[str]
    signatures: Sequence[str]
    body: bytes = BODY


def cases() -> Iterator[Case]:
    yield from _changed_signatures()
    yield from _changed_timestamps()
    yield from _changed_bodies()
    yield from _wrong_headers()
    yield from _wrong_secrets()
    yield from _resigned_oddities()


def _changed_signatures() -> Iterator[Case]:
    digits = GOOD.removeprefix("v0=")
    for place, digit in enumerate(digits):
        flipped = f"{int(digit, 16) ^ 1 << place % 4:x}"
        yield Case(f"flipped bit of digit {place}", [AT], [f"v0={digits[:place]}{flipped}{digits[place + 1 :]}"])
    for name, text in {
        "upper case": GOOD.upper(),
        "upper digits": f"v0={digits.upper()}",
        "no version": digits,
        "version 1": f"v1={digits}",
        "version twice": f"v0=v0={digits}",
        "half": GOOD[:35],
        "one digit less": GOOD[:-1],
        "one digit more": f"{GOOD}0",
        "blank before": f" {GOOD}",
        "blank behind": f"{GOOD} ",
        "tab behind": f"{GOOD}\t",
        "list with a good one": f"{GOOD},v0={'0' * 64}",
        "list with blank": f"v0={'0' * 64} {GOOD}",
        "only version": "v0=",
        "empty": "",
        "zeros": f"v0={'0' * 64}",
        "base64": "v0=dGhpcyBpcyBub3QgYSBkaWdlc3QgYnV0IGJhc2U2NA==",
        "full width digits": f"v0={''.join(chr(ord(one) + 0xFEE0) for one in digits)}",
        "arabic digits": f"v0={digits.replace('0', chr(0x660)).replace('1', chr(0x661)).replace('2', chr(0x662))}",
        "zero byte": f"{GOOD}\0",
        "line break": f"{GOOD}\n",
        "quoted": f'"{GOOD}"',
        "reversed": f"v0={digits[::-1]}",
        "sha1 length": f"v0={digits[:40]}",
        "sha512 length": f"v0={digits * 2}",
        "none": "None",
    }.items():
        yield Case(f"signature: {name}", [AT], [text])


def _changed_timestamps() -> Iterator[Case]:
    for seconds in (1, 60, 299, 300, 301, 302, 600, 86_400):
        for sign_of in (-1, 1):
            other = str(NOW_S + sign_of * seconds)
            yield Case(f"timestamp moved by {sign_of * seconds} s, not signed again", [other], [GOOD])
            if seconds > 300:
                yield Case(f"signed {sign_of * seconds} s away", [other], [sign_request(SIGNING_SECRET, other, BODY)])
    for name, text in {
        "empty": "",
        "word": "now",
        "negative": f"-{AT}",
        "fraction": f"{AT}.0",
        "milliseconds": f"{AT}000",
        "zero": "0",
        "hex": hex(NOW_S),
        "exponent": "1.7e9",
        "infinite": "inf",
        "nan": "nan",
        "huge": "9" * 40,
        "date": "2026-11-21T12:00:00Z",
    }.items():
        yield Case(f"timestamp: {name}", [text], [GOOD])


def _changed_bodies() -> Iterator[Case]:
    text = BODY.decode()
    for place in range(0, len(BODY), max(1, len(BODY) // 40)):
        flipped = BODY[:place] + bytes([BODY[place] ^ 1]) + BODY[place + 1 :]
        yield Case(f"flipped bit of byte {place}", [AT], [GOOD], flipped)
    for name, body in {
        "empty": b"",
        "byte less": BODY[:-1],
        "byte more": BODY + b"0",
        "line break behind": BODY + b"\n",
        "blank before": b" " + BODY,
        "field more": BODY + b"&x=1",
        "payload twice": BODY + b"&" + BODY,
        "decoded": json.dumps({"payload": text}).encode(),
        "lower percent": text.replace("%7B", "%7b").encode(),
        "blank as %20": text.replace("+", "%20").encode(),
        "encoded twice": quote(text).encode(),
        "utf-16": text.encode("utf-16"),
        "latin-1": text.replace("%5Cu00e9", "\u00e9").encode("latin-1"),
        "byte order mark": b"\xef\xbb\xbf" + BODY,
        "gzip": gzip.compress(BODY, mtime=0),
        "chunked frames": b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n",
        "upper case": BODY.upper(),
        "reversed": BODY[::-1],
        "other payload": urlencode({"payload": "{}"}).encode(),
    }.items():
        yield Case(f"body: {name}", [AT], [GOOD], body)


def _wrong_headers() -> Iterator[Case]:
    bad = f"v0={'0' * 64}"
    yield Case("no headers", [], [])
    yield Case("no timestamp", [], [GOOD])
    yield Case("no signature", [AT], [])
    yield Case("two timestamps, equal", [AT, AT], [GOOD])
    yield Case("two timestamps, good first", [AT, "1"], [GOOD])
    yield Case("two timestamps, good last", ["1", AT], [GOOD])
    yield Case("two signatures, equal", [AT], [GOOD, GOOD])
    yield Case("two signatures, good first", [AT], [GOOD, bad])
    yield Case("two signatures, good last", [AT], [bad, GOOD])
    yield Case("two of both", [AT, AT], [GOOD, GOOD])
    yield Case("three signatures", [AT], [bad, GOOD, bad])
    yield Case("swapped headers", [GOOD], [AT])


def _wrong_secrets() -> Iterator[Case]:
    for name, secret in {
        "another": OTHER,
        "empty": "",
        "blank": " ",
        "first half": SIGNING_SECRET[:16],
        "with a line break": f"{SIGNING_SECRET}\n",
        "upper case": SIGNING_SECRET.upper(),
        "twice": SIGNING_SECRET * 2,
        "bytes of its hex": SIGNING_SECRET[::-1],
        "the word": "signing_secret",
        "none": "None",
    }.items():
        yield Case(f"secret: {name}", [AT], [sign_request(secret, AT, BODY)])
    prefix = {"v1": f"v1:{AT}:", "no version": f"{AT}:", "dots": f"v0.{AT}.", "no time": "v0::", "only body": ""}
    for name, start in prefix.items():
        signature = sign_request(SIGNING_SECRET, AT, BODY)
        other = sign_request(SIGNING_SECRET, start, BODY)
        assert other != signature
        yield Case(f"base string: {name}", [AT], [other])
    yield Case("signature of an empty body", [AT], [sign_request(SIGNING_SECRET, AT, b"")])


STRICTER = "signed oddity: "
"""Requests that only the holder of the secret can make. slack-sdk takes them, because `int` is lenient."""


def _resigned_oddities() -> Iterator[Case]:
    arabic = "".join(chr(0x660 + int(one)) for one in AT)
    for name, text in {
        "blank before": f" {AT}",
        "line break": f"{AT}\n",
        "plus": f"+{AT}",
        "leading zero": f"0{AT}",
        "underscore": f"{AT[:4]}_{AT[4:]}",
        "arabic": arabic,
    }.items():
        yield Case(f"{STRICTER}{name}", [text], [sign_request(SIGNING_SECRET, text, BODY)])


CASES = list(cases())


class Fixed(Clock):
    """slack-sdk's clock, standing still."""

    def now(self) -> float:
        return float(NOW_S)


def is_accepted(case: Case, secrets: Sequence[str] = (SIGNING_SECRET,)) -> bool:
    try:
        verify_body(secrets, check_headers(case.timestamps, case.signatures, NOW_S * 1000), case.body)
    except InvalidSignature:
        return False
    return True


def oracle(case: Case) -> bool | None:
    """Return slack-sdk's opinion; None where it sees only one of two headers, or raises."""
    if len(case.timestamps) > 1 or len(case.signatures) > 1:
        return None
    headers = dict(zip((TIMESTAMP, SIGNATURE), (case.timestamps[:1], case.signatures[:1]), strict=True))
    sent = {name: values[0] for name, values in headers.items() if values}
    try:
        return SignatureVerifier(SIGNING_SECRET, Fixed()).is_valid_request(case.body, sent)
    except (ValueError, TypeError):
        return None


def test_cases_are_many_and_named_once() -> None:
    assert len(CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)
    assert len(set(map(repr, (case[1:] for case in CASES)))) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_request_is_refused_as_slack_sdk_refuses_it(case: Case) -> None:
    assert not is_accepted(case)
    assert oracle(case) in ((True,) if case.name.startswith(STRICTER) else (False, None))


@pytest.mark.parametrize("seconds", [-300, -299, -1, 0, 1, 299, 300])
def test_signature_holds_for_five_minutes_either_way(seconds: int) -> None:
    at = str(NOW_S + seconds)
    case = Case("in time", [at], [sign_request(SIGNING_SECRET, at, BODY)])
    assert is_accepted(case)
    assert oracle(case) is True


def test_tolerance_counts_milliseconds() -> None:
    for late_ms, accepted in ((300_000, True), (300_001, False)):
        try:
            verify_body([SIGNING_SECRET], check_headers([AT], [GOOD], NOW_S * 1000 + late_ms), BODY)
            found = True
        except InvalidSignature:
            found = False
        assert found is accepted


@pytest.mark.parametrize("secrets", [(OTHER, SIGNING_SECRET), (SIGNING_SECRET, OTHER)])
def test_either_secret_holds_while_one_is_replaced(secrets: Sequence[str]) -> None:
    assert is_accepted(Case("good", [AT], [GOOD]), secrets)
    assert is_accepted(Case("other", [AT], [sign_request(OTHER, AT, BODY)]), secrets)


@pytest.mark.parametrize("secrets", [(), ("",), (OTHER,), (OTHER, "")])
def test_no_secret_accepts_nothing(secrets: Sequence[str]) -> None:
    assert not is_accepted(Case("good", [AT], [GOOD]), secrets)
    assert not is_accepted(Case("empty", [AT], [sign_request("", AT, BODY)]), secrets)


def test_signature_equals_that_of_slack_sdk() -> None:
    verifier = SignatureVerifier(SIGNING_SECRET)
    for body in (b"", BODY, "\U0001f600".encode()):
        assert sign_request(SIGNING_SECRET, AT, body) == verifier.generate_signature(timestamp=AT, body=body)


async def test_app_refuses_every_case_and_changes_nothing(slack_world: SlackWorld, clean_store_url: str) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    good = form_of(slack_world.slack.press(message, "sayso:approve"))
    at_s = now_ms() // 1000
    headers = sign(good, at_s=at_s)
    before = await read_store(clean_store_url)
    async with slack_world.world.client() as client:
        for case in CASES:
            moved = [one.replace(AT, str(at_s)) for one in case.timestamps]
            if [*moved] == [str(at_s)] and case.signatures == [GOOD] and case.body == BODY:
                continue
            signed = [
                (name, one) for name, values in ((TIMESTAMP, moved), (SIGNATURE, case.signatures)) for one in values
            ]
            lines = [(name.encode(), one.encode()) for name, one in signed]
            if any(byte in line for _, line in lines for byte in (b"\n", b"\0")):
                continue  # no HTTP server passes these on
            lines.append((b"content-type", headers["Content-Type"].encode()))
            body = good if case.body == BODY else case.body
            answer = await client.post(f"/channels/slack/{NAME}/interactions", content=body, headers=lines)
            assert answer.status_code == 401, case.name
    assert await read_store(clean_store_url) == before
    assert (await slack_world.read(record)).open


async def test_replayed_request_decides_once(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    body = form_of(slack_world.slack.press(message, "sayso:approve"))
    headers = sign(body)
    for _ in range(10):
        assert (await slack_world.post("interactions", body, headers)).status_code == 200
    assert len((await slack_world.read(record)).decisions) == 1


async def test_chunked_body_is_verified_like_any_other(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    body = form_of(slack_world.slack.press(message, "sayso:approve"))

    async def chunks() -> AsyncIterator[bytes]:
        for place in range(0, len(body), 100):
            yield body[place : place + 100]

    async with slack_world.world.client() as client:
        path = f"/channels/slack/{NAME}/interactions"
        assert (await client.post(path, content=chunks(), headers=sign(body[:-1]))).status_code == 401
        assert (await client.post(path, content=chunks(), headers=sign(body))).status_code == 200
    await slack_world.channel.background.finish()
    assert not (await slack_world.read(record)).open

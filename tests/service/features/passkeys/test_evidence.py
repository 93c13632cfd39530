"""Evidence of approvals that passkeys signed: each is verified offline, and an altered one is named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sayso.core.records.proofs import encode_base64url
from sayso.core.records.terms import RuleTerms
from sayso.features.evidence.verify_evidence import verify_text
from service.features.evidence.exporting import make_file
from tests.builders import ask, make_pending, person
from tests.fakes.authenticator import PRESENT, Authenticator, write_data
from tests.service.edge.web.sites import Visit
from tests.service.features.evidence.test_evidence import run_script
from tests.service.features.passkeys.people import add_passkey, decide_signed

Decision = dict[str, Any]
EDITED = {"order": "A-1", "amount": 9}


async def make_evidence(anna: Visit, alg: str = "ES256", secrets: tuple[str, ...] = (), **given: Any) -> str:
    """Return the evidence of one approval that a passkey signed."""
    device = await add_passkey(anna, alg=alg)
    record = await make_pending(anna.wiring, ask(terms=RuleTerms(step_up="passkey", secrets=secrets)))
    await decide_signed(anna, device, record, person("anna"), **given)
    return await make_file(anna.wiring, [record.run.id], "root")


@pytest.mark.parametrize("alg", ["ES256", "EdDSA", "RS256"])
@pytest.mark.parametrize("given", [{}, {"args": EDITED}], ids=["as asked", "edited"])
async def test_assertion_is_verified_offline(anna: Visit, tmp_path: Path, alg: str, given: dict[str, Any]) -> None:
    text = await make_evidence(anna, alg, **given)
    assert '"nonce"' in text
    assert verify_text(text, [])[0] == []
    done = run_script(tmp_path, text)
    assert (done.returncode, done.stderr) == (0, "")


async def test_assertion_over_masked_arguments_is_verified(anna: Visit) -> None:
    text = await make_evidence(anna, secrets=("order",), args=EDITED)
    assert "[secret]" in text
    assert verify_text(text, [])[0] == []


def change(name: str, value: object) -> Callable[[Decision], None]:
    def tamper(decision: Decision) -> None:
        decision["proof"][name] = value(decision["proof"][name]) if callable(value) else value

    return tamper


def give(**fields: object) -> Callable[[Decision], None]:
    return lambda decision: decision.update(fields)


def flip(text: str) -> str:
    return ("B" if text[0] == "A" else "A") + text[1:]


TAMPERINGS: dict[str, Callable[[Decision], None]] = {
    "no assertion": give(proof=None),
    "another signature": change("signature", flip),
    "a signature cut off": change("signature", lambda text: text[:-4]),
    "altered client data": change("client_data", flip),
    "altered authenticator data": change("authenticator_data", flip),
    "nobody verified": change("authenticator_data", encode_base64url(write_data("localhost", PRESENT, 9))),
    "another nonce": change("nonce", "AAAA"),
    "another content": change("content", "0" * 64),
    "another public key": change("public_key", flip),
    "a missing part": lambda decision: decision["proof"].pop("nonce"),
    "another item": give(args_digest="0" * 64),
    "another action": give(action="value"),
    "other arguments": give(args={**EDITED, "amount": 900}),
}


@pytest.mark.parametrize("name", TAMPERINGS)
async def test_altered_assertion_is_named(anna: Visit, name: str, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (await make_evidence(anna, args=EDITED)).splitlines()]
    item = next(line for line in lines if line["kind"] == "item")
    TAMPERINGS[name](item["view"]["decisions"][0])
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    faults, _ = verify_text(text, [])
    named = f"{item['name']} has a decision that no passkey signed: {item['view']['decisions'][0]['id']}."
    assert named in faults
    assert run_script(tmp_path, text).stdout.splitlines() == faults


async def test_passkey_of_another_key_is_named(anna: Visit) -> None:
    lines = [json.loads(line) for line in (await make_evidence(anna)).splitlines()]
    decision = next(line for line in lines if line["kind"] == "item")["view"]["decisions"][0]
    forged = Authenticator(origin=anna.wiring.settings.public_url).answer(bytes(32))
    decision["proof"] |= {name: forged[name] for name in ("client_data", "authenticator_data", "signature")}
    faults, _ = verify_text("".join(f"{json.dumps(line)}\n" for line in lines), [])
    assert any("that no passkey signed" in fault for fault in faults)

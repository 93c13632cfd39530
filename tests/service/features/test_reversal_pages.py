"""The page of calls that can be undone: escaped, masked, one press for who may, a further proof where one is due."""

from service.core.settings import Settings
from tests.service.edge.web.sites import CSRF, OWN, visit
from tests.service.features.reversing import offer_undo

HOSTILE = '<script>alert(1)</script>"\u202e'


async def test_call_is_shown_and_one_press_undoes_it_once(settings: Settings) -> None:
    async with visit(settings) as reader:
        offer = await offer_undo(reader.wiring, output=HOSTILE, note="hunter22", secrets=("note",))
        for place in ("/undo", f"/runs/{offer.items[0].reverses.run_id if offer.items[0].reverses else ''}"):
            page = await reader.read(place)
            assert "<script>alert" not in page
            assert "hunter22" not in page
            assert f'action="/undo/{offer.id}"' in page
        assert "Calls that you can undo" in await reader.read("/")
        form = {"csrf": CSRF, "digest": offer.items[0].digest}
        for _ in range(2):  # a form sent twice
            sent = await reader.client.post(f"/undo/{offer.id}", data=form, headers=OWN)
            assert (sent.status_code, sent.headers["location"]) == (303, f"/items/{offer.id}/i1")
        assert "There is no call that you can undo." in await reader.read("/undo")
        record = (await reader.wiring.desk.suspensions.read(offer.id)).record
        assert [decision.by.id for decision in record.items[0].decisions] == ["anna"]


async def test_forged_stale_and_foreign_forms_undo_nothing(settings: Settings) -> None:
    async with visit(settings) as reader:
        offer, other = await offer_undo(reader.wiring), await offer_undo(reader.wiring, "k2", reviewers=("ben",))
        run = await reader.wiring.runs.read(offer.items[0].reverses.run_id if offer.items[0].reverses else "")
        sent = [
            (offer.id, {"csrf": "x", "digest": offer.items[0].digest}),
            (offer.id, {"csrf": CSRF, "digest": "0" * 64}),
            (other.id, {"csrf": CSRF, "digest": other.items[0].digest}),
            (run.suspension_id, {"csrf": CSRF, "digest": "0" * 64}),
        ]
        for suspension_id, form in sent:
            answer = await reader.client.post(f"/undo/{suspension_id}", data=form, headers=OWN)
            assert answer.status_code >= 400
        assert (await reader.wiring.desk.suspensions.read(offer.id)).record.offers_undo
        assert len(await reader.wiring.runs.undoable()) == 2
        page = await reader.read("/undo")
        assert "Others can undo" in page
        assert f'action="/undo/{other.id}"' not in page


async def test_further_proof_is_given_on_the_item(settings: Settings) -> None:
    async with visit(settings) as reader:
        offer = await offer_undo(reader.wiring, step_up="code")
        page = await reader.read("/undo")
        assert f'action="/undo/{offer.id}"' not in page
        assert "Undo with a further proof…" in page
        form = {"csrf": CSRF, "digest": offer.items[0].digest}
        refused = await reader.client.post(f"/undo/{offer.id}", data=form, headers=OWN)
        assert refused.status_code >= 400


async def test_page_of_an_offer_names_its_answers(settings: Settings) -> None:
    async with visit(settings) as reader:
        offer = await offer_undo(reader.wiring)
        page = await reader.read(f"/items/{offer.id}/i1")
    assert "Undo refund?" in page
    assert ">Undo</button>" in page
    assert "Keep…" in page
    assert "If you keep it, nobody can undo it any more." in page
    assert ">Deny" not in page
    assert "Edit" not in page.partition("Your decision")[2].partition("</section>")[0]
    assert "Stays as it is from" in page
    assert "if nobody answers" not in page
    assert "sayso:veto" not in page
    assert "ran this for demo" in page
    assert "Question to" not in page
    assert "I handle this" in page


async def test_page_of_a_kept_call_says_who_kept_it(settings: Settings) -> None:
    async with visit(settings) as reader:
        offer = await offer_undo(reader.wiring)
        place = f"/items/{offer.id}/i1"
        form = {"csrf": CSRF, "digest": offer.items[0].digest, "answer": "deny", "message": "Fine"}
        assert (await reader.client.post(place, data=form, headers=OWN)).status_code == 303
        page = await reader.read(place)
    assert "anna chose to keep it</h2>" in page
    assert '<span class="state">kept</span>' in page
    assert 'class="stages"' not in page
    assert ">Denied by" not in page.partition('id="what-h"')[0]

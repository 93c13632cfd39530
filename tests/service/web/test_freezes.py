"""What is frozen is shown on every page; an admin freezes and lifts it on one."""

import re

from service.settings import Settings
from tests.builders import person
from tests.service.web.sites import Visit, visit


async def make_admin(site: Visit) -> None:
    """Give the visitor the role for it."""
    people = site.wiring.reviewers._people
    anna = await people.find_reviewer("default", "anna")
    assert anna is not None
    await people.save_reviewer("default", anna.model_copy(update={"roles": ("reviewer", "admin")}))


async def test_an_admin_freezes_and_lifts(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        assert "Nothing is frozen." in await anna.read("/freezes")
        await anna.send("/freezes", kind="tool", name="refund_payment", reason="Wrong <amounts>")
        for place in ("/", "/runs", "/decided", "/freezes"):
            assert "the tool refund_payment" in await anna.read(place)
        page = await anna.read("/freezes")
        assert "Wrong &lt;amounts&gt;" in page
        (freeze_id,) = re.findall(r'action="/freezes/(frz_\w+)/lift"', page)
        await anna.send(f"/freezes/{freeze_id}/lift")
        page = await anna.read("/freezes")
        assert "Nothing is frozen." in page
        assert "lifted by anna" in page


async def test_a_reviewer_sees_what_is_frozen_and_changes_nothing(settings: Settings) -> None:
    async with visit(settings) as anna:
        freeze = await anna.wiring.freezes.freeze("default", "all", "Stop", person("root"))
        page = await anna.read("/freezes")
        assert "everything" in page
        assert '<form method="post" action="/freezes' not in page
        await anna.send(f"/freezes/{freeze.id}/lift", status=403)
        assert "admin" in await anna.send("/freezes", status=403, kind="all")
        assert await anna.wiring.freezes.in_force("default", fresh=True) == [freeze]


async def test_a_form_that_names_nothing_is_shown_again_with_what_was_typed(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        page = await anna.send("/freezes", status=422, kind="tool", reason="Look at this")
        assert "Write the name of the tool" in page
        assert "Look at this" in page
        await anna.send("/freezes", status=422, kind="world")
        await anna.send("/freezes", status=422, kind="tool", name="a\x01b")

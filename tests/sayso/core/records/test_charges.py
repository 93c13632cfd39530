"""What rules remember of a call, as the trail keeps it."""

from sayso.core.records.judgements import Remembered


def test_describe_returns_what_a_dump_does() -> None:
    least = Remembered(rule_id="r", key="unseen", counter="c", per_s=60, total=0, amount=None)
    full = Remembered(
        rule_id="r",
        key="budget",
        counter="c",
        per_s=60,
        total=3,
        amount=4,
        most=5,
        samples=6,
        of="args.a",
        by=("agent", "args.b"),
    )
    for one in (least, full):
        assert one.describe() == one.model_dump(mode="json", exclude_defaults=True)

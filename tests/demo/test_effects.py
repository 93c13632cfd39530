"""What the tools did is on file, once for each key where a tool is idempotent."""

from pathlib import Path

from demo.effects import Effect, Effects


def effect(key: str) -> Effect:
    return Effect(tool="send_email", args={"to": "a@example.com"}, run_id="r", call_id="c", idempotency_key=key, pid=1)


def test_nothing_was_done_where_there_is_no_file(tmp_path: Path) -> None:
    assert Effects(tmp_path).read() == ()


def test_effects_are_read_back_in_order(tmp_path: Path) -> None:
    effects = Effects(tmp_path)

    effects.record(effect("k1"))
    effects.record(effect("k2"))

    assert effects.read() == (effect("k1"), effect("k2"))


def test_a_tool_that_is_not_idempotent_does_it_again(tmp_path: Path) -> None:
    effects = Effects(tmp_path)

    effects.record(effect("k1"))
    effects.record(effect("k1"))

    assert len(effects.read()) == 2


def test_an_idempotent_tool_does_it_once_for_each_key(tmp_path: Path) -> None:
    effects = Effects(tmp_path)

    effects.record_once(effect("k1"))
    effects.record_once(effect("k1"))
    effects.record_once(effect("k2"))

    assert [done.idempotency_key for done in effects.read()] == ["k1", "k2"]

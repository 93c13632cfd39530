"""Tests of the log of effects."""

from pathlib import Path

from demo.agents import Effect, Effects


def effect(key: str) -> Effect:
    return Effect(tool="send_email", args={"to": "a@example.com"}, run_id="r", call_id="c", idempotency_key=key, pid=1)


def test_read_is_empty_without_a_file(tmp_path: Path) -> None:
    assert Effects(tmp_path).read() == ()


def test_read_returns_effects_in_order(tmp_path: Path) -> None:
    effects = Effects(tmp_path)

    effects.record(effect("k1"))
    effects.record(effect("k2"))

    assert effects.read() == (effect("k1"), effect("k2"))


def test_record_repeats_an_effect(tmp_path: Path) -> None:
    effects = Effects(tmp_path)

    effects.record(effect("k1"))
    effects.record(effect("k1"))

    assert len(effects.read()) == 2


def test_record_once_keeps_one_effect_per_key(tmp_path: Path) -> None:
    effects = Effects(tmp_path)

    effects.record_once(effect("k1"))
    effects.record_once(effect("k1"))
    effects.record_once(effect("k2"))

    assert [done.idempotency_key for done in effects.read()] == ["k1", "k2"]

"""Sentences with moments in them."""

from sayso.core.sentences.deadlines import Moment, compose, write_sentence


def test_compose_places_texts_and_moments_where_the_message_has_them() -> None:
    sentence = compose("At %(when)s %(who)s is asked", when=Moment(7), who="dora")
    assert sentence == ("At ", Moment(7), " ", "dora", " is asked")
    assert write_sentence(sentence, str) == "At 7 dora is asked"


def test_compose_reads_no_place_in_a_fact() -> None:
    assert compose("%(who)s at %(when)s", who="%(when)s", when=Moment(7)) == ("%(when)s", " at ", Moment(7))

"""Rows of the reports."""

from sayso.cli.channels import _describe_person
from sayso.wire.channels import PersonFiguresView


def test_row_of_a_reviewer_counts_drills_and_names_both_flags() -> None:
    one = PersonFiguresView(
        name="anna",
        decided=4,
        measured=4,
        p50_look_ms=None,
        fast=1,
        night=0,
        approved=3,
        denied=1,
        approvals_measured=2,
        instant=1,
        flagged=True,
        drills=3,
        drills_approved=2,
        drills_flagged=True,
    )
    row = ("anna", "4", "75%", "", "25%", "50%", "2 of 3", "approves too fast, approves false calls")
    assert _describe_person(one) == row

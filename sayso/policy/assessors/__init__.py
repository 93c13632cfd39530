"""Assessors: functions outside the rules that may add scrutiny to a call, and never decide."""

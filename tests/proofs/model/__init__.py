"""A plain model of every step of the desk: the oracle of the state machine.

Nothing here is immutable, compared or committed. A step changes a `SuspensionModel` and records its run's events, or
raises `Refused` with the name of the error that the desk must raise.
"""

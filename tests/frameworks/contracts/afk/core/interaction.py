"""The provider for runs without an interaction provider."""

from typing import Any

from afk.agents.types import ApprovalDecision, UserInputDecision


class HeadlessInteractionProvider:
    """Answers at once, with the fallback."""

    def __init__(self, *, approval_fallback: str = "deny", input_fallback: str = "deny") -> None:
        self._approval = approval_fallback
        self._input = input_fallback

    async def request_approval(self, request: Any) -> ApprovalDecision:
        """Answer with the fallback."""
        return ApprovalDecision(kind=self._approval, reason="headless_fallback")

    async def request_user_input(self, request: Any) -> UserInputDecision:
        """Answer with the fallback."""
        return UserInputDecision(kind=self._input, reason="headless_fallback")

    async def await_deferred(self, token: str, *, timeout_s: float) -> None:
        """Know nothing."""

    async def notify(self, event: Any) -> None:
        """Do nothing."""

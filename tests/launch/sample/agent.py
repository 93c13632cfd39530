"""Gated functions, methods and blocks, and clients of both kinds."""

from sayso import AsyncClient, Client, Denied, InDoubt, Suspended, gate


@gate
def refund(order: str, amount: float) -> str:
    """Pay a customer back."""
    return f"paid {amount:g} for {order}"


@gate(key="mail-{to}", wait_s=60, on_doubt="ask", on_denied="return", again=True)
async def send_mail(to: str, text: str) -> int:
    """Send a mail."""
    return len(f"{to}{text}")


class Bank:
    """A bank whose method is gated."""

    def __init__(self, name: str) -> None:
        self.name = name

    @gate(key="pay-{invoice}", idempotent=True)
    def pay(self, invoice: str) -> list[str]:
        """Pay an invoice."""
        return [self.name, invoice]


def deploy(version: str, client: Client) -> str:
    """Deploy a version in a gated block."""
    with gate("deploy", {"version": version}, key=f"deploy-{version}", client=client) as call:
        call.result = version
        return call.idempotency_key


def run(order: str) -> str:
    """Refund an order, whatever becomes of it."""
    try:
        text: str = refund.with_key(f"refund-{order}")(order, 5.0)
        parts: list[str] = Bank("First").pay("A-1")
    except Denied as denied:
        return denied.for_model if denied.decided_by == "person" else denied.message
    except Suspended as suspended:
        return suspended.key
    except InDoubt as doubt:
        return doubt.message
    return " ".join([text, *parts])


async def answer(to: str) -> int:
    """Send a mail."""
    return await send_mail(to, "Hello")


def decide_first(client: Client) -> str:
    """Approve the first item that waits."""
    for suspension in client.waiting("pending").suspensions:
        for item in suspension.items:
            decided = client.decide(suspension.id, item, "approve", message="Fine.")
            return decided.status
    return "nothing waits"


async def read_runs(client: AsyncClient) -> list[str]:
    """Return how the runs stand."""
    page = await client.runs("suspended")
    return [run.status for run in page.runs]

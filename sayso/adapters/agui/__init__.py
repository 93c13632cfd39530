"""Proxy for AG-UI agents: interrupts wait at the desk, and people's decisions resume the run.

    from sayso.adapters.agui import make_app
    app.mount("/agent", make_app("https://agents.example.com/agui"))

`sayso agui --url …` serves the same. The run waits without a connection, and the proxy keeps nothing: the desk has the
item, the agent or its client has the conversation.
"""

from sayso.adapters.agui.proxies import AgUiOptions
from sayso.adapters.agui.serving import make_app, serve

__all__ = ["AgUiOptions", "make_app", "serve"]

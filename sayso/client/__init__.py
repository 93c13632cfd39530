"""The HTTP clients of a desk's API."""

from sayso.client.clients import URL, AsyncClient, Client

__all__ = ["URL", "AsyncClient", "Client"]

"""The models of the HTTP API, written once: the desk answers with them, and the client reads them."""

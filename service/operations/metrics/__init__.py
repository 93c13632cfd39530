"""The page of metrics at `/metrics`."""

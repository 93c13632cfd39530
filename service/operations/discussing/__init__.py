"""Comments on items and files attached to them, apart from their records: no digest or decision depends on them."""

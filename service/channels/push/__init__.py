"""Web push: notifications of browsers and phones that open the item. Nothing in a notification decides."""

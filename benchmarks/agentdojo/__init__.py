"""The dojo: an agent that obeys every injected order, before a desk whose reviewer knows what the user asked for."""

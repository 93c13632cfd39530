"""Words of conditions beyond CEL: named lists and constants, and shorthands that Sayso computes from a call."""

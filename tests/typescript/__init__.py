"""Tests of the TypeScript client with a whole Sayso: `make typescript` runs them."""

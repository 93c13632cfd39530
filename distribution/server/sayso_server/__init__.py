"""Sayso's server: `sayso up`, `serve`, `worker`, `clock`, `setup` and `demo` run the programs in the folder `tree`."""

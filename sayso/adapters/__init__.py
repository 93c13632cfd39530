"""One file a kind of software that Sayso speaks with, each importing what it needs only when it is used."""

"""Adapters: one file or folder per framework, which imports the framework's packages only when used."""

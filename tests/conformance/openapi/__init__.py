"""Checks of the OpenAPI files: two validators, and clients generated from them that start runs."""

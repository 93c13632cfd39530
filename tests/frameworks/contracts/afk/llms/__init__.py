"""Requests and responses of models."""

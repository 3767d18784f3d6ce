"""Sinks deliver results from the outbox, each with a cursor of its own."""

"""Shells: observe, ask the core, carry out."""

"""Nouns: what users write and what travels. Imports nothing but the standard library and msgspec."""

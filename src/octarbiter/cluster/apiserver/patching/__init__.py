"""Patches of every kind, and who owns which field: pure functions over JSON values and their types."""

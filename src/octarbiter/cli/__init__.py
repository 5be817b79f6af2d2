"""The command `octo`: one file per command; the composition root."""

"""One module per controller."""

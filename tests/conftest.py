"""For all tests. That it is here also makes the modules beside it importable for them."""

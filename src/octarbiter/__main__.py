"""`python -m octarbiter` is `octo`."""

from octarbiter.cli.main import main

main()

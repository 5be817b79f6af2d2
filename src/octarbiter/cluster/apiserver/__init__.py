"""The embedded API server: the protocol of Kubernetes, over the store."""

"""octarbiter: multi-role batch jobs and fair sharing for Kubernetes."""

__version__ = "0.1.0"

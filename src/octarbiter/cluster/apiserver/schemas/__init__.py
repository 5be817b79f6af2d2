"""What do built-in objects look like? A generated table of Kubernetes' own kinds, and what is read from it."""

from octarbiter.cluster.apiserver.schemas.trees import type_of

__all__ = ["type_of"]

"""Names inside a namespace: `ns%topic` and `%RETRY%ns%group` on the wire, bare for the user."""

from __future__ import annotations

from gantrymq.model.names import namespace_of, with_namespace, without_namespace


class Namespace:
    """One client's namespace; an empty one changes nothing."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def wrap(self, name: str) -> str:
        """Return a topic or group as servers know it; one that is wrapped already stays."""
        return with_namespace(self.name, name) if self.name else name

    def unwrap(self, name: str) -> str:
        """Return a topic or group as the user knows it; those of other namespaces stay."""
        if not self.name or namespace_of(name) != self.name:
            return name
        return without_namespace(name)

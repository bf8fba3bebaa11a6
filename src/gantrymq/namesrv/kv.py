"""Texts by namespace and key: the only thing that a name server keeps over a restart.

One namespace has a meaning, `ORDER_TOPIC_CONFIG`: topic -> `brokerA:4;brokerB:4`. The file is
Apache's `kvConfig.json`, `{"configTable":{"namespace":{"key":"value"}}}`. Who writes it is not
known here: every change is handed to `save` as the whole file, and holds only if that returns.

An empty namespace stays, as with Apache: a broker that is told an empty table knows that no topic
is ordered any more, while one that is told nothing leaves its topics as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import ContentError, InvalidValue, shown
from gantrymq.limits import (
    KV_BYTES_MAX,
    KV_NAME_BYTES_MAX,
    KV_NAMESPACES_MAX,
    KV_VALUE_BYTES_MAX,
)
from gantrymq.wire.bodies.route import KV_CONFIG, KvConfig
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"


class KvTables:
    """Tables of texts, by namespace. One event loop owns it."""

    def __init__(self, save: Callable[[bytes], None]) -> None:
        self._tables: dict[str, dict[str, str]] = {}
        self._save = save

    def load(self, content: bytes) -> None:
        """Take what `kvConfig.json` holds instead of what is here.

        Raises:
            ContentError: it is not such a file, or too large; names the place.
        """
        if len(content) > KV_BYTES_MAX:
            problem = f"has {len(content)} bytes, more than the {KV_BYTES_MAX} that may be kept"
            raise ContentError("kvConfig.json", problem)
        tables = KV_CONFIG.decode(content).config_table
        self._tables = {namespace: dict(table) for namespace, table in tables.items()}

    def dump(self) -> bytes:
        """Return the file."""
        return _encode(self._tables)

    def get(self, namespace: str, key: str) -> str | None:
        """Return a value."""
        return self._tables.get(namespace, {}).get(key)

    def table(self, namespace: str) -> Mapping[str, str] | None:
        """Return a namespace; None if there was never anything in it."""
        return self._tables.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set a value, and save.

        Raises:
            InvalidValue: a text is blank or too long, or there is too much already.
            SystemFailure: it could not be saved. In both cases nothing was changed.
        """
        _check_text("the namespace", namespace, KV_NAME_BYTES_MAX)
        _check_text("the key", key, KV_NAME_BYTES_MAX)
        _check_text("the value", value, KV_VALUE_BYTES_MAX, blank=True)
        if namespace not in self._tables and len(self._tables) >= KV_NAMESPACES_MAX:
            raise InvalidValue(f"there are {KV_NAMESPACES_MAX} namespaces already: use one of them")
        table = {**self._tables.get(namespace, {}), key: value}
        self._keep({**self._tables, namespace: table})

    def delete(self, namespace: str, key: str) -> None:
        """Remove a value, and save; one that is not there is no error.

        Raises:
            SystemFailure: it could not be saved; nothing was changed.
        """
        table = dict(self._tables.get(namespace, {}))
        if table.pop(key, None) is not None:
            self._keep({**self._tables, namespace: table})

    def _keep(self, tables: dict[str, dict[str, str]]) -> None:
        """Save, then believe."""
        content = _encode(tables)
        if len(content) > KV_BYTES_MAX:
            raise InvalidValue(
                f"the key-value tables would have {len(content)} bytes, more than {KV_BYTES_MAX}: "
                "delete keys first"
            )
        try:
            self._save(content)
        except OSError as error:
            raise SystemFailure(f"the key-value tables could not be saved: {error}") from error
        self._tables = tables


def _encode(tables: Mapping[str, Mapping[str, str]]) -> bytes:
    """Return tables as the file has them."""
    return KV_CONFIG.encode(KvConfig(config_table=tables))


def _check_text(what: str, text: str, bytes_max: int, *, blank: bool = False) -> None:
    """Refuse a text that cannot be kept."""
    if not (blank or text.strip()):
        raise InvalidValue(f"{what} is blank: give one")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidValue(f"{what} {shown(text)!r} is not Unicode") from None
    if size > bytes_max:
        raise InvalidValue(f"{what} {shown(text)!r} has {size} bytes: use at most {bytes_max}")

"""The certificate of a server, looked at while it runs: a renewed one is used without a restart.

Every `LOOK_S` the files of the settings, the lists of revoked certificates among them, are asked
when they were last written. When one has changed all of them are read again, and connections that
begin from then on get the new certificate; those that are open go on. Files that cannot be used
(half written, a key of another certificate) change nothing and are said once. Owned by the event
loop's thread.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    import ssl

    from gantrymq.transport.tls import ServerTls

log = logging.getLogger(__name__)

LOOK_S: Final = 5.0


class Certificates:
    """What a server shows to those who connect."""

    def __init__(self, tls: ServerTls, now: float) -> None:
        """Read the files.

        Raises:
            InvalidValue: a file cannot be used, or one that is needed is not named.
        """
        self._tls = tls
        self._paths = [
            Path(path)
            for path in (tls.cert_path, tls.key_path, tls.trust_path, tls.crl_path)
            if path is not None
        ]
        self._seen = self._stamps()
        self._looked_at = now
        self.context = tls.context()
        """None where TLS is not offered."""

    def _stamps(self) -> list[tuple[int, int, int]]:
        """Return what changes when a file is written or replaced; a missing one has nothing."""
        found = []
        for path in self._paths:
            try:
                state = path.stat()
                found.append((state.st_mtime_ns, state.st_size, state.st_ino))
            except OSError:
                found.append((0, 0, 0))
        return found

    def look(self, now: float) -> ssl.SSLContext | None:
        """Return the new context if the files have changed and can be used, else None."""
        if self.context is None or now - self._looked_at < LOOK_S:
            return None
        self._looked_at = now
        stamps = self._stamps()
        if stamps == self._seen:
            return None
        self._seen = stamps
        try:
            self.context = self._tls.context()
        except InvalidValue as error:
            log.error("the certificate is not renewed, the one before goes on: %s", error)  # noqa: TRY400
            return None
        log.info("the certificate was renewed: %s", self._tls.cert_path)
        return self.context

"""In which epoch a broker's log was last written: `config/epoch.json`, forced before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gantrymq.errors import ContentError
from gantrymq.store import config_files

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import Files

FILE_NAME: Final = "epoch.json"


class LastWritten(msgspec.Struct, frozen=True):
    """When a log was last written."""

    epoch: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    boot: str = ""
    """The machine's start since when a process had it open."""
    doubtful: bool = False
    """It may lack what it once reported. A further start does not make that better."""

    def is_whole(self, boot: str, *, was_clean: bool, is_forced: bool) -> bool:
        """Tell whether a log certainly has what it had when it was last open.

        What a process wrote and did not force is still there, unless the machine went down too.
        """
        same_boot = bool(boot) and boot == self.boot
        return not self.doubtful and (was_clean or is_forced or same_boot)


def load_epoch(files: Files, config: Path) -> LastWritten:
    """Return when the log was last written; epoch 0 if there never was one.

    Raises:
        StoreDamaged: there is a file that cannot be understood.
    """

    def parse(content: bytes) -> LastWritten:
        try:
            return msgspec.json.decode(content, type=LastWritten)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ContentError(FILE_NAME, str(error)) from None

    loaded = config_files.load(files, config / FILE_NAME, parse)
    return LastWritten() if loaded is None else loaded.value


def save_epoch(files: Files, config: Path, last: LastWritten) -> None:
    """Note the epoch, on the disk before it returns."""
    files.make_directory(config)
    config_files.save(files, config / FILE_NAME, msgspec.json.encode(last))

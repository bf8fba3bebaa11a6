"""What `gantrymq store` does: inspect, verify, rebuild, export."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import msgspec

from gantrymq.cli.arguments import FAILED, PROGRAM, SUCCESS
from gantrymq.cli.progress import Progress
from gantrymq.cli.store_text import overview_text, rebuild_text, verify_text
from gantrymq.clock import SystemClock
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.store.export import export_blocks
from gantrymq.store.files import OsFiles
from gantrymq.store.overview import overview_of
from gantrymq.store.reader import StoreReader
from gantrymq.store.rebuild import rebuild_in_place, rebuild_into
from gantrymq.store.shape import log_range, settings_of, unknown_sizes
from gantrymq.store.verify import known_topics, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path


class Request(NamedTuple):
    """The arguments of one command."""

    command: str
    directory: Path
    config: Path | None = None
    as_json: bool = False
    target: Path | None = None
    known_topics: bool = False
    output: Path | None = None


def run(request: Request) -> int:
    """Do what was asked for; return the exit status."""
    command = _COMMANDS[request.command]
    try:
        return command(request)
    except BrokenPipeError:
        # Whoever reads the output has had enough; what is left of it goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return _fail(request, "interrupted")
    except GantryError as error:
        return _fail(request, str(error))
    except OSError as error:
        return _fail(request, _os_text(request, error))


def _os_text(request: Request, error: OSError) -> str:
    place = str(error.filename or request.directory)
    hint = ""
    if isinstance(error, FileNotFoundError) and place.startswith(str(request.directory)):
        hint = "; if a broker is writing to the store, run this again"
    return f"{place}: {error.strerror or error}{hint}"


def _fail(request: Request, why: str) -> int:
    line = "; ".join(why.splitlines())
    sys.stderr.write(f"{PROGRAM} store {request.command}: {line}\n")
    return FAILED


def _open(request: Request) -> StoreReader:
    settings = settings_of(request.directory, OsFiles(), request.config)
    reader = StoreReader(settings)
    with Progress("recovering", *log_range(settings, OsFiles())) as progress:
        reader.recover(progress)
    return reader


def _check_outside(request: Request, path: Path | None, option: str) -> None:
    """See that what is written does not land among the files of the store.

    Raises:
        InvalidValue: it would.
    """
    if path is None:
        return
    paths = settings_of(request.directory, OsFiles(), request.config).paths
    place = path.resolve()
    for part in (paths.root, *paths.commit_log, *paths.read_only_commit_log):
        if place.is_relative_to(part.resolve()):
            raise InvalidValue(
                f"{option} {path} lies in the store itself ({part}), where a broker refuses to "
                "start over files that are not its own; name a place outside of it"
            )


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _print_json(value: object) -> None:
    _print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _inspect(request: Request) -> int:
    with _open(request) as reader:
        overview = overview_of(reader)
    if request.as_json:
        _print_json(overview)
    else:
        _print(overview_text(overview))
    return SUCCESS


def _verify(request: Request) -> int:
    with _open(request) as reader:
        begin, end = reader.min_log_offset, reader.max_log_offset
        with Progress("verifying", begin, end) as progress:
            report = verify(reader, progress=progress)
    if request.as_json:
        problems = [
            {"kind": problem.kind.value, "place": problem.place, "what": problem.what}
            for problem in report.problems
        ]
        _print_json(msgspec.to_builtins(report) | {"problems": problems})
    else:
        _print(verify_text(report, request.directory))
    return SUCCESS if report.is_sound else FAILED


def _export(request: Request) -> int:
    _check_outside(request, request.output, "-o")
    with _open(request) as reader, _output(request) as stream:
        begin, end = reader.min_log_offset, reader.max_log_offset
        with Progress("exporting", begin, end) as progress:
            for block in export_blocks(reader, progress):
                stream.write(block)
        stream.flush()
    return SUCCESS


def _output(request: Request) -> AbstractContextManager[BinaryIO]:
    if request.output is None:
        return nullcontext(sys.stdout.buffer)
    return request.output.open("wb")


def _rebuild(request: Request) -> int:
    _check_outside(request, request.target, "--to")
    files = OsFiles()
    settings = settings_of(request.directory, files, request.config)
    if request.config is None and (unknown := unknown_sizes(settings, files)):
        names = " and ".join(unknown)
        return _fail(request, f"no file shows {names}; give the broker's configuration with -c")
    topics = known_topics(settings, files) if request.known_topics else None
    clock = SystemClock()
    with Progress("rebuilding", *log_range(settings, files)) as progress:
        if request.target is None:
            report = rebuild_in_place(settings, files, clock, topics=topics, progress=progress)
        else:
            report = rebuild_into(
                settings, request.target, files, clock, topics=topics, progress=progress
            )
    if request.as_json:
        _print_json(report)
    else:
        _print(rebuild_text(report))
    return FAILED if report.trouble_count else SUCCESS


_COMMANDS: Final[dict[str, Callable[[Request], int]]] = {
    "inspect": _inspect,
    "verify": _verify,
    "export": _export,
    "rebuild": _rebuild,
}

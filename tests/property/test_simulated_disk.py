"""Whatever is done to a simulated disk: what was forced survives, and nothing comes of nothing."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.testing.disk import Names, SimulatedFiles

FILE = Path("/a")
BLOCKS = 8
SECTOR = 512


class Write(NamedTuple):
    """Fill one sector with one byte."""

    sector: int
    value: int
    mapped: bool


STEPS = st.lists(
    st.one_of(
        st.builds(Write, st.integers(0, BLOCKS - 1), st.integers(1, 255), st.booleans()),
        st.sampled_from(["sync", "sync path", "write back", "kill"]),
    ),
    max_size=30,
)


@given(STEPS, st.integers(0, 2**16), st.sampled_from([None, 0.0, 0.5, 1.0]))
def test_each_sector_is_one_that_was_written_since_it_was_forced(
    steps: list[Write | str], seed: int, keep: float | None
) -> None:
    disk = SimulatedFiles(seed)
    region = disk.create(FILE, BLOCKS * SECTOR)
    region.sync()
    possible: list[list[int]] = [[0] for _ in range(BLOCKS)]
    for step in steps:
        if isinstance(step, Write):
            start = step.sector * SECTOR
            content = bytes([step.value]) * SECTOR
            if step.mapped:
                region.buffer[start : start + SECTOR] = content
            else:
                disk.write_at(FILE, start, content, 0)
            possible[step.sector].append(step.value)
        elif step == "write back":
            disk.write_back()
        elif step == "kill":
            disk = disk.kill()
            region = disk.open(FILE)
        else:
            region.sync() if step == "sync" else disk.sync(FILE)
            possible = [values[-1:] for values in possible]
    content = disk.crash(keep).read(FILE)
    assert len(content) == BLOCKS * SECTOR
    for sector, values in enumerate(possible):
        found = set(content[sector * SECTOR : (sector + 1) * SECTOR])
        assert len(found) == 1, "a sector is never torn"
        assert found <= set(values)
        if keep == 1.0:
            assert found == {values[-1]}


NAME = st.sampled_from(["a", "b", "c"])
NAME_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("make"), NAME, NAME),
        st.tuples(st.just("remove"), NAME, NAME),
        st.tuples(st.just("rename"), NAME, NAME),
        st.tuples(st.just("sync"), NAME, NAME),
    ),
    max_size=20,
)


@given(NAME_STEPS, st.integers(0, 2**16), st.sampled_from(Names))
def test_the_names_of_the_last_sync_are_there_if_nothing_came_after(
    steps: list[tuple[str, str, str]], seed: int, names: Names
) -> None:
    root = Path("/")
    disk = SimulatedFiles(seed, names=names)
    model: dict[str, int] = {}
    versions: list[dict[str, int]] = [{}]
    for number, (kind, name, other) in enumerate(steps):
        if kind == "make":
            disk.write_at(root / name, 0, bytes([number]), 0)
            disk.sync(root / name)
            model[name] = number
        elif kind == "remove" and name in model:
            disk.remove(root / name)
            del model[name]
        elif kind == "rename" and name in model and name != other:
            disk.rename(root / name, root / other)
            model[other] = model.pop(name)
        elif kind == "sync":
            disk.sync_directory(root)
            versions = []
        versions.append(dict(model))
    after = disk.crash(0.5)
    found = {name: after.read(root / name)[0] for name in after.names(root)}
    if names is Names.JOURNALED:
        contents = {content for version in versions for content in version.values()}
        assert set(found) in [set(version) for version in versions]
        assert set(found.values()) <= contents
    if len(versions) == 1:
        assert found == versions[0]

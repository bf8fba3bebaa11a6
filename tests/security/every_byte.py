"""Changes every byte of a small store, one at a time, and says what a broker made of each.

    python tests/security/every_byte.py                all of it: an hour or more (make flips)
    python tests/security/every_byte.py --padding 16   less of long runs of zeros: some 40 minutes
    python tests/security/every_byte.py --only commitlog --how clean --step 7 --first 3
    python tests/security/every_byte.py --how clean-extended       queues with extensions

Exit status 1 if anything was served that must not be, or was missing or refused without need.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]

from support.flips import ROOT, Outcome, Sample, flip  # noqa: E402

HOWS = ("clean", "crash", "clean-extended", "crash-extended")
"""The latter two are for the files that only they have, unless others are named."""


PADDING = 32


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def word(found: Outcome) -> str:
    """Return what became of it, in a word."""
    if found.refused:
        return "refused with a sentence"
    if found.wrong:
        return f"served, {found.wrong[0]} changed"
    if found.viewed_wrong:
        return f"viewed, {found.viewed_wrong[0]} changed"
    if found.not_come:
        return "what waited never comes"
    if found.missing:
        return "that message is passed over" if len(found.missing) == 1 else "cut at the damage"
    return "nothing to be seen"


def positions(data: bytes, first: int, step: int, padding: int) -> list[int]:
    """Return which bytes to change; those with `PADDING` zeros around them are all alike."""
    around = bytes(2 * PADDING + 1)
    return [
        at
        for at in range(first, len(data), step)
        if at % padding == 0 or data[max(at - PADDING, 0) : at + PADDING + 1] != around
    ]


def main() -> int:
    """Run; print a table of what became of how many bytes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="files whose path begins like this")
    parser.add_argument("--how", choices=[*HOWS, "all"], default="all")
    parser.add_argument("--step", type=int, default=1, help="every n-th byte (default 1)")
    parser.add_argument("--padding", type=int, default=1, help="every n-th of many zeros")
    parser.add_argument("--first", type=int, default=0, help="the first byte of each file")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    problems, count, began = 0, 0, time.monotonic()
    for how in HOWS if chosen.how == "all" else (chosen.how,):
        extended = how.endswith("extended")
        sample = Sample(clean=how.startswith("clean"), extended=extended)
        table: dict[str, Counter[str]] = defaultdict(Counter)
        for path, data in sample.files.items():
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(chosen.only or ("consumequeue_ext" if extended else "")):
                continue
            kind = name.partition("/")[0] if not name.startswith("config") else name
            for position in positions(data, chosen.first, chosen.step, chosen.padding):
                found = sample.outcome(path, flip(position))
                count += 1
                table[kind][word(found)] += 1
                if problem := sample.problem(path, position, found):
                    problems += 1
                    say(f"{how} {name} byte {position}: {problem}")
        for kind, words in sorted(table.items()):
            said = ", ".join(f"{number} {text}" for text, number in words.most_common())
            say(f"{how:14} {kind:32} {sum(words.values()):6} bytes: {said}")
    say(f"{count} bytes in {time.monotonic() - began:.0f} s, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

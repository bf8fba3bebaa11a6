"""`gantrymq doctor`: the way from name server to broker, and what is wrong on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin.checkup import GOOD, WRONG, examine
from gantrymq.cli.output import Answer

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given


async def doctor(session: Session, _given: Given) -> Answer:
    """Walk the way; the status is 1 if something is wrong."""
    findings = await examine(session)
    lines = []
    for each in findings:
        lines.append(f"{each.verdict:<8} {each.what}: {each.told}")
        if each.advice:
            lines.append(f"{'':<8} -> {each.advice}")
    wrong = sum(each.verdict == WRONG for each in findings)
    other = sum(each.verdict not in {GOOD, WRONG} for each in findings)
    lines.append(f"{wrong} wrong, {other} warnings, {len(findings) - wrong - other} well")
    data = [each._asdict() for each in findings]
    return Answer([*lines], data, status=1 if wrong else 0)

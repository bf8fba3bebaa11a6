"""Sub-commands that speak to name servers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import brokers
from gantrymq.cli.output import Answer

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given


async def get_namesrv_config(session: Session, _given: Given) -> Answer:
    """Say the settings of every name server."""
    answers = await brokers.name_server_settings(session)
    answers.check()
    found = {address: brokers.settings_in(reply) for address, reply in answers.found.items()}
    answer = Answer(data=found, problems=answers.complaints)
    for address, settings in found.items():
        answer.parts.append(f"============{address}============")
        answer.parts += [f"{name:<50}=  {value}" for name, value in sorted(settings.items())]
    return answer


async def update_namesrv_config(session: Session, given: Given) -> Answer:
    """Change a setting of every name server."""
    key, value = given.text("key"), given.text("value")
    answers = await brokers.change_name_servers(session, {key: value})
    answers.check()
    text = f"update name server config success![{', '.join(answers.found)}]"
    data = {"nameServers": list(answers.found), "changed": {key: value}}
    return Answer([text, f"{key} : {value}"], data, answers.complaints)


async def update_kv_config(session: Session, given: Given) -> Answer:
    """Set a value."""
    namespace, key, value = given.text("namespace"), given.text("key"), given.text("value")
    answers = await brokers.put_value(session, namespace, key, value)
    answers.check()
    data = {"namespace": namespace, "key": key, "value": value}
    return Answer(["create or update kv config to namespace success."], data, answers.complaints)


async def delete_kv_config(session: Session, given: Given) -> Answer:
    """Delete a value."""
    namespace, key = given.text("namespace"), given.text("key")
    answers = await brokers.delete_value(session, namespace, key)
    answers.check()
    data = {"namespace": namespace, "key": key}
    return Answer(["delete kv config from namespace success."], data, answers.complaints)


async def _change(session: Session, given: Given, *, allowed: bool) -> Answer:
    name = given.text("brokerName")
    answers = await brokers.change_write_permission(session, name, allowed=allowed)
    answers.check()
    verb, field = ("add", "addTopicCount") if allowed else ("wipe", "wipeTopicCount")
    counts = {address: int(reply.fields.get(field, "0")) for address, reply in
              answers.found.items()}  # fmt: skip
    lines = [
        f"{verb} write perm of broker[{name}] in name server[{address}] OK, {count}"
        for address, count in counts.items()
    ]
    return Answer([*lines], {"broker": name, "topics": counts}, answers.complaints)


async def wipe_write_perm(session: Session, given: Given) -> Answer:
    """Let clients write to a broker no more."""
    return await _change(session, given, allowed=False)


async def add_write_perm(session: Session, given: Given) -> Answer:
    """Let clients write to a broker again."""
    return await _change(session, given, allowed=True)

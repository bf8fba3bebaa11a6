"""The guessable commands: where each is implemented, its arguments, what it is for.

Arguments stand as people write them: `NAME` must be given, `[NAME]` may be, `--option=` takes a
value and `--flag` none; `!` behind an option says that it must be given. Nothing else is imported
here: help and completion read this table alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Verb(NamedTuple):
    """A command."""

    module: str
    """Of `gantrymq.cli.daily`."""
    function: str
    arguments: str
    about: str


_WHERE: Final = "--cluster= --broker="
_FILTER: Final = "--key= --tag= --property= --body="

NOUNS: Final[dict[str, dict[str, Verb]]] = {
    "topic": {
        "list": Verb("topics", "list_topics", "--all --cluster=", "topics, what they hold"),
        "show": Verb("topics", "show", "TOPIC", "a topic: queues, places, who reads it"),
        "create": Verb(
            "topics",
            "create",
            f"TOPIC {_WHERE} --queues= --read= --write= --perm= --order --attributes=",
            "make a topic on all brokers, or change it",
        ),
        "delete": Verb(
            "topics", "delete", "TOPIC --yes", "what goes with a topic; --yes: delete all of it"
        ),
    },
    "group": {
        "list": Verb("groups", "list_groups", "", "groups, their members, how far behind"),
        "show": Verb("explain", "group", "GROUP", "everything about a group"),
        "create": Verb(
            "groups",
            "create",
            f"GROUP {_WHERE} --retries= --retry-queues= --disable --orderly",
            "make a group on all brokers, or change it",
        ),
        "delete": Verb(
            "groups", "delete", "GROUP --yes", "what goes with a group; --yes: delete all of it"
        ),
        "reset": Verb(
            "resets",
            "reset",
            "GROUP [TOPIC] --to-time= --to-offset= --to= --queue= --offline --yes --undo-file="
            " --undo=",
            "where a group would go; --yes: move it; --undo FILE: put it back",
        ),
    },
    "quota": {
        "list": Verb("quotas", "list_quotas", "", "topics and groups that have a quota"),
        "topic": Verb(
            "quotas",
            "topic",
            "TOPIC --send-bytes= --send-requests= --read-bytes= --read-requests=",
            "what a topic may take and give in a second; with an option: change it",
        ),
        "group": Verb(
            "quotas",
            "group",
            "GROUP --read-bytes= --read-requests=",
            "what a group may read in a second; with an option: change it",
        ),
    },
    "message": {
        "get": Verb("messages", "get", "ID --topic=", "a message by either of its ids"),
        "search": Verb(
            "messages",
            "search",
            f"TOPIC --id= {_FILTER} --from= --until= --resume= --max= --look-at=",
            "messages by id, key, tag, property or body in a time window",
        ),
        "send": Verb(
            "messages", "send", "TOPIC BODY --tag= --key= --property= --delay=", "send a message"
        ),
        "resend": Verb("messages", "resend", "ID --topic=", "send a message once more"),
        "trace": Verb("messages", "trace", "ID --trace-topic=", "what clients traced of a message"),
    },
    "dlq": {
        "list": Verb("dlq", "list_groups", "", "groups that have dead letters"),
        "show": Verb("dlq", "show", f"GROUP {_FILTER} --topic= --max=", "a group's dead letters"),
        "redrive": Verb(
            "redriving",
            "redrive",
            f"GROUP --to= {_FILTER} --topic= --rate= --loops= --count= --dry-run --job=",
            "send dead letters again, as a job that can be killed and goes on",
        ),
    },
    "cluster": {
        "list": Verb("clusters", "list_brokers", "", "brokers and their load"),
        "show": Verb("clusters", "show", "BROKER", "a broker's figures"),
        "config": Verb("clusters", "config", "BROKER [SETTING] [VALUE]", "read or change settings"),
        "demo": Verb("", "", "--layout= --keep", "start a deployment here, show it, clean up"),
    },
    "client": {
        "list": Verb("clients", "list_clients", "", "all producers and consumers"),
        "show": Verb("clients", "show", "CLIENT GROUP --stack", "what a member says of itself"),
    },
    "explain": {
        "message": Verb(
            "explain", "message", "ID --topic=", "where it is, who had it, why it was retried"
        ),
        "group": Verb("explain", "group", "GROUP", "members, lag, who owns it, what is wrong"),
    },
}

ALONE: Final[dict[str, Verb]] = {
    "doctor": Verb("doctor", "doctor", "", "walk from name server to broker, say what is wrong"),
    "apply": Verb(
        "apply", "apply", "-f/--file=! --cluster= --yes",
        "what a file of topics, groups and permissions would change; --yes: change it",
    ),
    "completion": Verb("completion", "completion", "SHELL", "a script for bash, zsh or fish"),
}  # fmt: skip

SHOWN: Final = {
    "topic": "topics", "group": "consumer groups", "quota": "how much they may do in a second",
    "message": "messages",
    "dlq": "dead letters", "cluster": "brokers and deployments", "client": "who is connected",
    "explain": "the whole life of a message or a group on one page",
}  # fmt: skip

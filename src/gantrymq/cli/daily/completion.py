"""`gantrymq completion bash|zsh|fish`: a script that the shell reads once; it asks no server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.cli.daily.table import ALONE, NOUNS
from gantrymq.cli.mqadmin.table import SPECS
from gantrymq.cli.output import Answer
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

OTHERS = {
    "server": [], "namesrv": [], "broker": [], "admin": list(SPECS),
    "store": ["inspect", "verify", "rebuild", "export"], "bench": ["send", "pull", "latency"],
    "pipeline": ["list", "run", "java"],
    "dashboard": ["user"], "user": ["add", "list", "remove", "passwd", "rekey"],
}  # fmt: skip
EVERYWHERE = [
    "--help", "--namesrv", "--json", "--timeout", "--access-key", "--secret-key",
    "--cluster-trust", "--cluster-certificate", "--cluster-key",
]  # fmt: skip


def _tree() -> dict[str, list[str]]:
    """Return every command to its sub-commands."""
    known = {**OTHERS, **{noun: list(verbs) for noun, verbs in NOUNS.items()}}
    return {**known, **{name: [] for name in ALONE}, "completion": ["bash", "zsh", "fish"]}


def _flags(arguments: str) -> list[str]:
    found = []
    for word in arguments.split():
        if word.startswith("-"):
            flag = word.partition("=")[0].rstrip("!?").rpartition("/")[2]
            found.append(flag if flag.startswith("--") else f"--{flag}")
    return [*found, *EVERYWHERE]


def _options() -> dict[str, list[str]]:
    """Return `command sub-command` to its options."""
    found = {f"admin {name}": _flags(spec.options) for name, spec in SPECS.items()}
    for noun, verbs in NOUNS.items():
        found |= {f"{noun} {name}": _flags(verb.arguments) for name, verb in verbs.items()}
    return found | {name: _flags(verb.arguments) for name, verb in ALONE.items()}


def bash() -> str:
    """Return the script for bash."""
    subs = "\n".join(
        f'    {name}) words="{" ".join(found)}" ;;' for name, found in _tree().items() if found
    )
    options = "\n".join(
        f'    "{name}") words="{" ".join(found)}" ;;' for name, found in _options().items()
    )
    return f"""\
# bash completion for gantrymq; in ~/.bashrc: source <(gantrymq completion bash)
_gantrymq() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{" ".join(_tree())} --help --version"
  elif [ "$COMP_CWORD" -eq 2 ] && [[ $cur != -* ]]; then
    case ${{COMP_WORDS[1]}} in
{subs}
    esac
  else
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{options}
    esac
    if [ -z "$words" ]; then case ${{COMP_WORDS[1]}} in
{options}
    esac; fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  [ ${{#COMPREPLY[@]}} -eq 0 ] && [[ $cur != -* ]] && COMPREPLY=($(compgen -f -- "$cur"))
  return 0
}}
complete -F _gantrymq gantrymq
"""


def zsh() -> str:
    """Return the script for zsh, which runs bash's."""
    return f"""\
#compdef gantrymq
# zsh completion for gantrymq; in ~/.zshrc, after compinit: source <(gantrymq completion zsh)
autoload -U +X bashcompinit && bashcompinit
{bash()}"""


def fish() -> str:
    """Return the script for fish."""
    lines = ["# fish completion for gantrymq; gantrymq completion fish | source"]
    first = "__fish_use_subcommand"
    for name, found in _tree().items():
        lines.append(f"complete -c gantrymq -f -n {first} -a {name}")
        if found:
            seen = f"'__fish_seen_subcommand_from {name}; and not __fish_seen_subcommand_from"
            lines.append(
                f"complete -c gantrymq -f -n {seen} {' '.join(found)}' -a '{' '.join(found)}'"
            )
    for name, flags in _options().items():
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split())
        lines += [
            f"complete -c gantrymq -n '{seen}' -l {flag.removeprefix('--')}" for flag in flags
        ]
    return "\n".join(lines) + "\n"


async def completion(_session: Session, given: Given) -> Answer:
    """Print the script of a shell."""
    made = {"bash": bash, "zsh": zsh, "fish": fish}.get(given.text("SHELL"))
    if made is None:
        raise InvalidValue(f"{given.text('SHELL')!r} is not known: give bash, zsh or fish")
    return Answer([made().rstrip("\n")], is_raw=True)

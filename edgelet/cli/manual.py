"""The manual page and the bash completion, generated from the argument parser: they cannot tell another story.

python -m edgelet.cli.manual man|bash      used by `make deb`; SOURCE_DATE_EPOCH dates the page
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator

from .. import __version__, config
from . import main

SECTION = 8

_DEFAULT = config.Settings()
_FILES = {
    config.DEFAULT_CONFIG: "configuration, in KubeletConfiguration's names; optional",
    _DEFAULT.static_pod_path: "manifests; a file put here is a pod that runs",
    config.DEFAULT_ROOT: "state that survives reboots: volumes, last good manifests, restart counts",
    _DEFAULT.run_dir: "state that does not: sockets, exec files",
    _DEFAULT.pod_logs_dir: "container logs",
}
_SIGNALS = {
    "SIGTERM, SIGINT": (
        "end the agent and leave the pods running; when the machine itself is going down, pods are stopped within "
        "shutdownGracePeriod first"
    ),
    "SIGHUP": "look again now: at all sources and at all that runs. systemctl reload sends it.",
}
_PODS = ("POD", "NAME")
_PATHS = ("FILE", "DIR", "PATH", "FILE|DIR|-")


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands' own parsers by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def man(parser: argparse.ArgumentParser, epoch: float) -> str:
    """The page as roff; `epoch` (seconds) is its date."""
    date = time.strftime("%Y-%m-%d", time.gmtime(epoch))
    lines = [f'.TH EDGELET {SECTION} "{date}" "edgelet {__version__}" "System Administration"']
    lines += [".SH NAME", f"edgelet {_MINUS} Kubernetes static pods without a control plane, run under Podman"]
    lines += [".SH SYNOPSIS", r"\fBedgelet\fR [\fIglobal flags\fR] \fIcommand\fR [\fIarguments\fR]"]
    lines += [".SH DESCRIPTION", *_roff(parser.description or "")]
    lines += ["Put a manifest into the manifest directory, and its pod runs; change it, and the pod follows."]
    lines += [".SH GLOBAL FLAGS", *_options(parser)]
    lines += [".SH COMMANDS"]
    for name, command in sorted(commands(parser).items()):
        lines += [f".SS {_text(name)}", *_command(command, main.COMMANDS.get(name, ""))]
    lines += [".SH ENVIRONMENT", *_environment(), ".SH FILES", *_pairs(_FILES), ".SH SIGNALS", *_pairs(_SIGNALS)]
    lines += [".SH EXIT STATUS"]
    lines += _roff("0: good. 1: it failed, or (status) something is degraded. 2: wrong usage, or (status) no agent.")
    lines += [".SH SEE ALSO", r"\fBpodman\fR(1), \fBsystemctl\fR(1)"]
    return "\n".join(lines) + "\n"


_MINUS = r"\-"


def _text(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", _MINUS)


def _roff(text: str) -> list[str]:
    """Plain text as roff lines; a line that starts like a request is protected."""
    return [r"\&" + line if line[:1] in (".", "'") else line for line in _text(text).splitlines()]


def _pairs(pairs: dict[str, str]) -> Iterator[str]:
    for name, text in pairs.items():
        yield from (".TP", rf"\fB{_text(name)}\fR", *_roff(text))


def _command(parser: argparse.ArgumentParser, text: str) -> Iterator[str]:
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield from (rf"\fB{_text(usage)}\fR", ".PP", *_roff(f"{text[:1].upper()}{text[1:]}."))
    yield from _options(parser)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        flags = ", ".join(rf"\fB{_text(flag)}\fR" for flag in action.option_strings)
        value = _value(action)
        yield ".TP"
        yield f"{flags} {value}".strip() if flags else value
        yield from _roff(action.help or "see above") or [""]


def _value(action: argparse.Action) -> str:
    if action.option_strings and action.nargs == 0:
        return ""
    metavar = action.metavar if isinstance(action.metavar, str) else None
    name = metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    return rf"\fI{_text(name)}\fR"


def _environment() -> Iterator[str]:
    pairs = {"EDGELET_CONFIG": "the configuration file, as --config"}
    pairs |= {option.variable: f"as {option.flags[0]}" for option in config.OPTIONS}
    return _pairs(dict(sorted(pairs.items())))


def bash(parser: argparse.ArgumentParser) -> str:
    """A completion for bash: commands, their flags, choices of flags, names of pods, files."""
    rows = []
    for name, command in sorted(commands(parser).items()):
        rows.append(f'        {name}) flags="{" ".join(_flags(command))}"; words="{_words(name, command)}" ;;')
    cases = "\n".join(
        f'        "{given}") COMPREPLY=($(compgen -W "{words}" -- "$cur")); return ;;'
        for given, words in sorted(_with_choices(parser))
    )
    names = " ".join(sorted(commands(parser)))
    return _BASH.format(
        commands=names, globals=" ".join(_flags(parser)), rows="\n".join(rows), choices=cases, paths=_path_flags(parser)
    )


def _flags(parser: argparse.ArgumentParser) -> list[str]:
    return [f for action in parser._actions for f in action.option_strings if action.help != argparse.SUPPRESS]


def _all_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for one in (parser, *commands(parser).values()):
        yield from (a for a in one._actions if not isinstance(a, argparse._SubParsersAction))


def _with_choices(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """("command flag", "choice choice ...") for each flag that has choices."""
    for name, command in commands(parser).items():
        for action in command._actions:
            for flag in action.option_strings if action.choices else ():
                yield f"{name} {flag}", " ".join(map(str, action.choices or ()))


def _path_flags(parser: argparse.ArgumentParser) -> str:
    found = {flag for a in _all_actions(parser) if a.metavar in _PATHS for flag in a.option_strings}
    return "|".join(sorted(found))


def _words(name: str, parser: argparse.ArgumentParser) -> str:
    """What stands for positional arguments: fixed words, "@pods" or "@files"."""
    if name == "get":
        return "pods events sources"
    for action in parser._actions:
        if not action.option_strings and action.metavar in _PODS:
            return "@pods"
        if not action.option_strings and action.metavar in _PATHS:
            return "@files"
    return ""


_BASH = """\
# bash completion for edgelet; generated from its argument parser
_edgelet() {{
    local cur prev word command="" flags="" words=""
    cur="${{COMP_WORDS[COMP_CWORD]}}"
    prev="${{COMP_WORDS[COMP_CWORD-1]}}"
    COMPREPLY=()
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case " {commands} " in *" $word "*) command="$word"; break ;; esac
    done
    case "$prev" in
        {paths}) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    esac
    case "$command $prev" in
{choices}
    esac
    case "$command" in
{rows}
        *) flags="{globals}"; words="{commands}" ;;
    esac
    if [[ "$cur" == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    elif [[ "$words" == @pods ]]; then
        COMPREPLY=($(compgen -W "$(edgelet get pods -o name 2>/dev/null | sed 's,^pod/,,')" -- "$cur"))
    elif [[ "$words" == @files ]]; then
        COMPREPLY=($(compgen -f -- "$cur"))
    else
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
    fi
}}
complete -o filenames -F _edgelet edgelet
"""


def run(arguments: list[str]) -> int:
    """Print what is asked for; 2 = nothing known was."""
    parser = main.full_parser()
    if arguments == ["man"]:
        print(man(parser, float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())), end="")
    elif arguments == ["bash"]:
        print(bash(parser), end="")
    else:
        print("usage: python -m edgelet.cli.manual man|bash", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

"""The settings as /configz and `edgelet support` show them: KubeletConfiguration's names, nothing secret."""

from __future__ import annotations

import urllib.parse
from typing import Any

from .. import config, config_options

SECRET = frozenset(("static_pod_url_header",))
_SECONDS = frozenset(
    (
        "file_check_frequency",
        "http_check_frequency",
        "sync_frequency",
        "container_log_monitor_interval",
        "shutdown_grace_period",
        "shutdown_grace_period_critical_pods",
        "node_status_update_frequency",
        "node_status_report_frequency",
    )
)


def shown(settings: config.Settings) -> dict[str, Any]:
    """Setting by key; headers are left out and URLs lose their user, password and query."""
    found: dict[str, Any] = {}
    for option in config_options.OPTIONS:
        value = getattr(settings, option.field)
        if option.field in SECRET:
            continue
        if option.field in _SECONDS:
            value = f"{value:g}s"
        elif option.field == "static_pod_url":
            value = [bare(url) for url in value]
        elif option.field == "node_labels":
            value = dict(value)
        elif option.field == "register_with_taints":
            value = [dict(zip(("key", "value", "effect"), taint, strict=True)) for taint in value]
        elif option.field == "client_ca_file":
            value = {"x509": {"clientCAFile": value}, "anonymous": {"enabled": False}, "webhook": {"enabled": False}}
        found[option.key] = list(value) if isinstance(value, tuple) else value
    return found


def bare(url: str) -> str:
    """The URL without what may be secret in it."""
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))

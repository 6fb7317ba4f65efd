"""Kubeconfigs as values: what is understood, and what is said about those that are not, without a secret in it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from edgelet.adapters.apiserver import kubeconfig
from edgelet.adapters.apiserver.credentials import Credentials
from edgelet.adapters.apiserver.kubeconfig import Access, Exec
from edgelet.errors import LinkError

SECRET = "s3cret"


def document(cluster: Any = None, user: Any = None, **more: Any) -> bytes:
    """A kubeconfig of one context."""
    found = {
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **more,
    }
    return json.dumps(found).encode()


def test_data_wins_over_files_and_paths_are_relative_to_the_kubeconfig() -> None:
    ca = base64.b64encode(b"PEM").decode()
    found = kubeconfig.parse(
        document(
            {"certificate-authority": "ca.pem", "certificate-authority-data": ca, "tls-server-name": "n"},
            {"client-certificate": "c.pem", "client-key": "/k.pem", "tokenFile": "t"},
        ),
        "/etc/edgelet",
    )
    assert (found.server, found.ca_data, found.ca_file, found.tls_server_name) == ("https://api:6443", b"PEM", "", "n")
    assert (found.cert_file, found.key_file, found.token_file) == ("/etc/edgelet/c.pem", "/k.pem", "/etc/edgelet/t")


def test_the_only_context_is_the_current_one_and_of_several_one_must_be_named() -> None:
    assert kubeconfig.parse(document(**{"current-context": ""}), "/").server == "https://api:6443"
    two = [{"name": n, "context": {"cluster": "c"}} for n in ("a", "b")]
    with pytest.raises(ValueError, match="current-context is not set; it has a, b"):
        kubeconfig.parse(document(contexts=two, **{"current-context": ""}), "/")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"- a", "no object"),
        (b"a: [", "not YAML"),
        (document(**{"current-context": "other"}), 'no "other" among its contexts'),
        (document({"server": "api:6443"}), "should read https://HOST:PORT"),
        (document({"server": f"https://me:{SECRET}@api"}), "credentials belong to the user"),
        (document({"proxy-url": "socks5://p"}), "proxy-url should read"),
        (document({"certificate-authority-data": "x"}), "is not base64"),
        (document(user={"auth-provider": {"name": SECRET}}), "auth-provider is not supported"),
        (document(user={"exec": {"args": [SECRET]}}), "exec has no command"),
    ],
)
def test_what_cannot_be_used_is_said_without_a_secret(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        kubeconfig.parse(data, "/")
    assert SECRET not in str(caught.value)


def test_no_secret_is_shown_by_accident() -> None:
    access = Access("https://api", token=SECRET, password=SECRET, key_data=SECRET.encode())
    assert SECRET not in repr(access)
    assert SECRET not in repr(Credentials(access).proof(0.0))


@pytest.mark.parametrize(
    ("script", "words"),
    [("exit 3", "exit status 3"), (f"echo {SECRET}", "printed no ExecCredential"), ("echo []", "no ExecCredential")],
)
def test_a_plug_in_that_fails_is_told_without_what_it_printed(script: str, words: str) -> None:
    access = Access("https://api", exec=Exec("/bin/sh", ("-c", script)))
    with pytest.raises(LinkError, match=words) as caught:
        Credentials(access).proof(0.0)
    assert SECRET not in str(caught.value)


def test_a_plug_in_that_is_missing_says_how_to_get_it() -> None:
    access = Access("https://api", exec=Exec("/nowhere/plugin", hint="install it from there"))
    with pytest.raises(LinkError, match="no command /nowhere/plugin; install it from there"):
        Credentials(access).proof(0.0)

"""What an httpGet hook sends (semantics 3.8)."""

from __future__ import annotations

from edgelet.core import hook_request
from edgelet.core.probe_request import Url
from edgelet.model.pod import HttpGet


def test_the_user_agent_is_the_kubelets_unless_the_manifest_names_one() -> None:
    assert hook_request.headers(HttpGet(80, headers=(("A", "b"),))) == (
        ("A", "b"),
        ("User-Agent", "kube-lifecycle/1.36"),
    )
    own = (("user-AGENT", "mine"),)
    assert hook_request.headers(HttpGet(80, headers=own)) == own


def test_credentials_do_not_go_over_plain_http() -> None:
    url, headers = hook_request.without_tls(
        Url("https", "10.0.0.1", 8443, "/x?y"), (("AUTHORIZATION", "Bearer t"), ("A", "b"))
    )
    assert (str(url), headers) == ("http://10.0.0.1:8443/x?y", (("A", "b"),))


def test_the_event_names_server_and_container() -> None:
    text = hook_request.fallback_text(Url("https", "10.0.0.1", 8443, "/x"), "0123456789abcdef")
    assert text == "request to HTTPS lifecycle hook 10.0.0.1:8443 of container 0123456789ab failed, retried over HTTP"

"""The `requests` session used for manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...outgoing import guard as guards
from ...outgoing.guard import Guard

if TYPE_CHECKING:
    import requests
    from requests.adapters import BaseAdapter


def session(guard: Guard) -> requests.Session:
    """A session of one kept connection per host, whose sockets `guard` knows. No cookies, no .netrc."""
    from http.cookiejar import DefaultCookiePolicy

    import requests

    made = requests.Session()
    made.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    made.auth = _no_auth
    made.headers.update(
        {
            "User-Agent": "edgelet",
            "Accept": "application/yaml, application/json, */*;q=0.5",
            "Accept-Encoding": "gzip",
        }
    )
    for scheme in ("http://", "https://"):
        made.mount(scheme, _adapter(guard))
    return made


def _adapter(guard: Guard) -> BaseAdapter:
    from requests.adapters import HTTPAdapter

    pools = guards.pools(guard)

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
            super().init_poolmanager(*args, **kwargs)
            self.poolmanager.pool_classes_by_scheme = pools

        def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
            manager = super().proxy_manager_for(proxy, **kwargs)
            manager.pool_classes_by_scheme = pools
            return manager

    return Adapter(pool_connections=2, pool_maxsize=1)


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Instead of what ~/.netrc says; `fetch` sends what the configuration says, as a header."""
    return request

"""The URL source: manifests from a web server, polled; last known good on disk.

`fetch` makes one request safely, `source` is the thread around it.  Owns the use of `requests` here.
"""

from .fetch import Access
from .source import UrlSource, prune

__all__ = ["Access", "UrlSource", "prune"]

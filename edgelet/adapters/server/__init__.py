"""The HTTP server: kubelet API and Kubernetes API subset on one set of paths.

Readers only: they see the status store and the event ring, and ask for changes through `Control`.
`api.ApiServer` is the way in; nothing heavy is imported before that module is.
"""

import sys
from typing import Any, cast

# tornado.log would load curses (0.4 MB) to colour a terminal. None makes the import fail, which it provides for.
cast(dict[str, Any], sys.modules).setdefault("curses", None)

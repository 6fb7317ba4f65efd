"""In the archive this is yaml._yaml: PyYAML's C part, which is linked into the executable under another name."""

from _linked_yaml import *  # noqa: F403
from _linked_yaml import CEmitter, CParser, get_version, get_version_string  # noqa: F401

"""The file source: a directory of manifests (or one file) becomes snapshots of pods.

`scan` looks at the directory, `hints` listens to inotify, `book` remembers each file and decides
what its absence means, `source` is the thread around them.
"""

from .source import FileSource

__all__ = ["FileSource"]

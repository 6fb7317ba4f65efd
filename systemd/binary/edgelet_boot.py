"""Starts edgelet inside the single binary: its own command line, or `-m MODULE` for its helper processes."""

import sys

if sys.argv[1:2] == ["-m"] and len(sys.argv) > 2:
    import runpy

    del sys.argv[1]
    runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
    sys.exit(0)

from edgelet.cli.main import main

sys.exit(main())

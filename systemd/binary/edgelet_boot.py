"""Starts edgelet inside the single binary: its own command line, or `-m MODULE ARGUMENTS` for its helper processes."""

import sys

if sys.argv[1:2] == ["-m"] and len(sys.argv) > 2:
    import runpy

    module = sys.argv[2]
    del sys.argv[1:3]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit(0)

from edgelet.cli.main import main

sys.exit(main())

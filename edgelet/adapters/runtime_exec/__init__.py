"""Commands in containers, through each container's own OCI runtime: `OciExec` implements ports.ExecRunner."""

from .runner import OciExec, Running

__all__ = ["OciExec", "Running"]

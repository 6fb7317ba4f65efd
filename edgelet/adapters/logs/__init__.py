"""Container logs on disk, in the kubelet's layout and format: reading, rotating, removing; termination messages."""

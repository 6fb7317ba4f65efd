"""The link to a Kubernetes API server: the Node, its Lease, mirror pods, statuses, events.

Owns everything that waits for that server.  Nothing here is imported without a kubeconfig, and no
other part of the agent ever waits for it.  `mirror.Mirror` is the way in.
"""

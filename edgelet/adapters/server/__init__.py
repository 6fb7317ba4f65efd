"""The HTTP server: kubelet API and Kubernetes API subset on one set of paths.

Readers only: they see the status store and the event ring, and ask for changes through `Control`.
`api.ApiServer` is the way in; nothing heavy is imported before that module is.
"""

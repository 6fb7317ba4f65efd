"""`make bench`: the budgets of the design, measured as medians and as ratios to a peer in the same run.

Each row interleaves edgelet and its peer, so that a noisy machine hurts both.  `make bench
ARGS="start restart"` runs single rows; `--runs N` changes the number of repetitions (10).
"""

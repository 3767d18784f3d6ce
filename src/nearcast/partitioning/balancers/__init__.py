"""Balancing: how a partition follows a workload that moves.

Each strategy is a pure function of a partition and of loads measured since it was made. It gives a `Move`, or None
where there is nothing to gain: what the partition becomes, why, what that costs and what it is worth. To carry it out
between two batches is the engine's part; no move changes an answer, since every partition is right.
"""

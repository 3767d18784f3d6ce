"""The baselines among the routers, as entry points of `nearcast.routers`."""

from nearcast.partitioning.routers.registry import Router

_HERE = "nearcast_papers.routers"
RTREE = Router("rtree", f"{_HERE}.r_tree:build", blind=True, fits=("borders",))
STR = Router("str", f"{_HERE}.r_tree:build_str", blind=True, fits=("borders",))
AQWA = Router("aqwa", f"{_HERE}.aqwa:build", fits=("borders",))
TEXT_FREQUENCY = Router("text-frequency", f"{_HERE}.text_only:build_frequency", balancer="local")
TEXT_HYPERGRAPH = Router("text-hypergraph", f"{_HERE}.text_only:build_hypergraph", balancer="local")
TEXT_METRIC = Router("text-metric", f"{_HERE}.text_only:build_metric", balancer="local")

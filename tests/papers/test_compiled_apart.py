"""The papers' kernels are kept by a version of their own, Nearcast's by theirs."""

import os

from nearcast.common.kernels.geometry import in_region
from nearcast_papers.baselines.kernels.scan import scan_posts
from nearcast_papers.compiled_apart import CACHE


def test_compiled_code_of_the_papers_lies_in_a_directory_of_their_own() -> None:
    assert os.path.commonpath([scan_posts._cache._cache_path, CACHE]) == CACHE
    assert os.path.commonpath([in_region._cache._cache_path, CACHE]) == os.environ["NUMBA_CACHE_DIR"]
    assert os.path.dirname(CACHE) == os.environ["NUMBA_CACHE_DIR"]

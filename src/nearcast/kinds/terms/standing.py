"""Subscriptions to frequent terms in a batch: they are counted on their ticks alone, from stored posts
(`kinds.terms.reports`).
"""

import numpy as np

from nearcast.engine.batch import BatchPlan
from nearcast.engine.roles import StandingRole
from nearcast.engine.routing_view import RoutingView
from nearcast.kinds.terms import KIND


class TermsStandingRole(StandingRole):
    kind = KIND

    def wants(self, plan: BatchPlan, posts: RoutingView) -> np.ndarray:
        """With `--keep none` the posts that a window may need are kept for it; otherwise all are stored anyway."""
        return super().wants(plan, posts) if plan.settings.keep == "none" else posts.everything()


ROLE = TermsStandingRole()

"""Who looks after which subscribers of relevance (DSkype §7.3): the ways to spread them over workers.

A subscriber is held by one or more workers, a post is looked at by some; wherever a post scores at least theta for a
subscriber, some worker holds the one and looks at the other. What two workers both find is dropped at the subscriber's
home. Hashing and location give a subscriber one worker and show every post to all; keyword and prefix cut the
vocabulary, so that a post goes where its words are, at the price of copies of subscribers; the hybrids do both.

A distribution is data: a function of the subscriber, its theta and what was learned from a sample, so that any process
comes to the same workers.
"""

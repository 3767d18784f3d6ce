"""Reading a state directory: searches, results, subscriptions, status. No Spark; any number of processes at once.

A reader is opened on one manifest and sees that committed batch, whatever the writer does meanwhile: the files of a
manifest stay on disk for some minutes after they have left it.
"""

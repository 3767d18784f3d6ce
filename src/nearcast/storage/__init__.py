"""The state directory: an append-only value made of immutable segments, and the manifests that name them.

    manifest/      one small JSON file per committed batch; the newest is the state
    segments/      posts, subscriptions, ends, deletes, terms, results: Arrow IPC, memory-mapped
    rejects/       what could not be used, with the reason
    archive/       expired posts as Parquet, one folder a time slot
    source/        the log of the files read so far
    spool/         packets on their way from route to work
    inbox/         ops from the command line that wait for the next batch
    checkpoint/    Spark's own: the offsets of each batch

A batch writes its files under names of its own and then links the next manifest to its number. Before that link
nothing has happened; after it everything has. A file that no manifest names is an orphan and is swept.
"""

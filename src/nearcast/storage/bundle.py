"""A bundle: named arrays of any lengths in one Arrow IPC file, opened by memory-mapping.

The file is a table of one row whose columns are lists, so any Arrow reader can open it; here each list's values come
back as a NumPy array (or an Arrow string array) without a copy.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

Arrays = dict[str, "np.ndarray | pa.StringArray"]


def bundle_table(arrays: Mapping[str, "np.ndarray | pa.StringArray"]) -> pa.Table:
    columns = {}
    for name, values in arrays.items():
        flat = values if isinstance(values, pa.Array) else pa.array(np.ascontiguousarray(values).reshape(-1))
        offsets = pa.array([0, len(flat)], pa.int64())
        columns[name] = pa.LargeListArray.from_arrays(offsets, flat)
    return pa.table(columns)


def open_bundle(path: Path) -> Arrays:
    """All arrays of a bundle, mapped. The arrays keep the mapping alive."""
    batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
    arrays: Arrays = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        values = column.values
        arrays[name] = values if pa.types.is_string(values.type) else values.to_numpy(zero_copy_only=True)
    return arrays

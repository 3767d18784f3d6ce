"""NumPy arrays as kernels take them, and as Arrow ones and back without a copy; without pandas, which `pyarrow.array`
and `to_numpy` import: half a second and more at a first search.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

TYPES = {
    np.dtype(np.int64): pa.int64(), np.dtype(np.int32): pa.int32(), np.dtype(np.uint64): pa.uint64(),
    np.dtype(np.uint32): pa.uint32(), np.dtype(np.float64): pa.float64(),
}  # fmt: skip


def arrow(values: np.ndarray) -> pa.Array:
    """Numbers, or truth values."""
    if values.dtype == np.bool_:
        bits = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])
    flat = np.ascontiguousarray(values)
    return pa.Array.from_buffers(TYPES[flat.dtype], len(flat), [None, pa.py_buffer(flat)])


def numbers(values: pa.Array) -> np.ndarray:
    """Numbers without nulls; read-only, as what is mapped is."""
    kind = values.type.to_pandas_dtype()
    data = values.buffers()[1]
    if data is None:
        return np.frombuffer(b"", kind)
    return np.frombuffer(data, kind)[values.offset : values.offset + len(values)]


def open_arrays(path: Path) -> "dict[str, np.ndarray | pa.StringArray]":
    """All arrays of a bundle (`storage.bundle`), mapped. The arrays keep the mapping alive."""
    batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
    lists = zip(batch.schema.names, batch.columns, strict=True)
    values = {name: column.values for name, column in lists}
    return {name: each if pa.types.is_string(each.type) else numbers(each) for name, each in values.items()}


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view, as arrays mapped from files are: so that Numba compiles each kernel for one kind of array
    only.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def freeze(columns: Any) -> None:
    """Freeze every array of a (frozen) dataclass."""
    for name, value in vars(columns).items():
        if isinstance(value, np.ndarray) and value.flags.writeable:
            object.__setattr__(columns, name, frozen(value))


def chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; no copy where it has one chunk."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def runs(begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The numbers of runs, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - (ends - sizes), sizes)

"""Arrays by where they lie in memory, so that one call can take those of any number of segments: to hand over the
thirty arrays of a segment takes Python and Numba longer than most searches of it do.
"""

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array


@intrinsic
def array_at(typing_context, address, size, kind):
    """The read-only array of `size` values of a kind that begins at an address. Whoever calls keeps it alive."""
    array = types.Array(kind.dtype, 1, "C", readonly=True)

    def generate(context, builder, signature, arguments):
        value = make_array(array)(context, builder)
        width = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
        populate_array(
            value,
            data=builder.inttoptr(arguments[0], value.data.type),
            shape=cgutils.pack_array(builder, [arguments[1]]),
            strides=cgutils.pack_array(builder, [width]),
            itemsize=width,
            meminfo=None,
        )
        return value._getvalue()

    return array(types.intp, types.intp, kind), generate

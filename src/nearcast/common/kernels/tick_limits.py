"""What kernels that count on ticks have in common."""

MOST_EMPTY = 1440  # empty reports in a row are sent one by one, further ones are only counted

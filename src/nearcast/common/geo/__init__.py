"""Places and regions of the sphere: distances, the flat form of a region, and polygons from WKT.

Regions are closed. Circles are measured along great circles on the sphere of radius 6371.0088 km; rectangles and
polygons are flat in lon/lat, so a polygon does not cross the antimeridian (a `Rect` and a `Circle` may). What is
written here in plain Python is the definition that the kernels are held to.
"""

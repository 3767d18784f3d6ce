"""What every other package builds on: errors, schemas, shapes of the sphere, text, arrays, shared kernels."""

"""The indexes that the papers compare themselves with, each as its paper tells it."""

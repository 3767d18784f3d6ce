"""What the papers' routers compute cell by cell and word by word."""

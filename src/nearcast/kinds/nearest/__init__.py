"""The k nearest posts, standing (SSTD's CKQ) and asked once (SKQ)."""

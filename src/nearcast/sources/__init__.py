"""Where posts and ops come from: files, the generator, and any streaming DataFrame. One file a source."""

"""A checkpoint behind HTTP, and the parts of the page to try it; needs the extra `[serve]`."""

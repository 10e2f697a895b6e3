"""A file of texts, row by row, with what a checkpoint says of them."""

"""Texts with labels → batches of token ids."""

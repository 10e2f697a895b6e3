"""The configuration that Hydra composes."""

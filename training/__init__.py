"""How a run trains, from the configuration to the report."""

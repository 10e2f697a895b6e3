"""What a run says, and how good its predictions are."""

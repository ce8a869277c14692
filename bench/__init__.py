"""What things cost, each beside its alternative in the same run."""

"""Fair AUC."""

"""Targets on the true AUC gap, followed by smooth surrogates."""

"""The hybrid tilt in parts: where both populations are, the tilt between them, descents, trials."""

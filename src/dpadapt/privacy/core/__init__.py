"""Read always: private rows, the session that hides and releases, the guarantee, the noise."""

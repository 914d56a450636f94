"""Read always: where private rows come from, and what their cells mean."""

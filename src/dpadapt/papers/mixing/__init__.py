"""Paper 004: its algorithms, clips, projections, filters and bounds; see ``dpadapt.mixing``."""

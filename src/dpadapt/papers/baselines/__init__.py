"""The methods that this library's own are compared with; found as ``dpadapt.baselines``."""

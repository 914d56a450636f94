"""Paper 004 (Golatkar et al., AdaMix): a few public examples mixed with many private ones."""

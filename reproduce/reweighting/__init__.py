"""Paper 001 (Bassily, Cortes, Mao, Mohri): public rows reweighted for a labelled private target."""

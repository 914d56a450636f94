"""Paper 003 (Kohen, Sheffet): a curator's rows and agents of another population."""

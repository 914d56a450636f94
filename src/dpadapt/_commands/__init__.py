"""What the commands do, one file each, and what they share; ``dpadapt.cli`` only names them."""

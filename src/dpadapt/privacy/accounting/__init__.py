"""Read always: events, what they cost together, and how much noise a budget asks for."""

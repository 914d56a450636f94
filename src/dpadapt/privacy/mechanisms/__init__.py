"""Read one: what may come out of a session, each with its event, its sampler and its proof."""

"""One technology a module: how the domain's ports are met. Adapters do not know one another."""

"""Where records live: one technology a module or folder, each an `IdempotencyStore` with its `StoreAdmin`."""

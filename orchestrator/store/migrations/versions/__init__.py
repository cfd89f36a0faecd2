"""One module a schema version, which brings a store of the version before to it; never changed once
released."""

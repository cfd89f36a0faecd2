"""One module a schema version; never changed once released."""

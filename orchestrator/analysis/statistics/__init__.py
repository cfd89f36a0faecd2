"""General statistics, independent of any study's question."""

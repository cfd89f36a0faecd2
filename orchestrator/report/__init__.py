"""From numbers to pages, tables and figures."""

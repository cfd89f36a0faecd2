"""Sections of a report: the sentences, tables and figures of each answer."""

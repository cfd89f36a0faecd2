"""The error whose text is written for the person at the keyboard."""


class UserError(Exception):
    """Bad input: one sentence with the rule, the value received and what to do next. The command exits with 2."""

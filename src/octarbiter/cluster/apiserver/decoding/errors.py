"""What can go wrong while a body is read."""


class Unreadable(ValueError):
    """The bytes are not what the content type says; the message says why, in a real server's words."""

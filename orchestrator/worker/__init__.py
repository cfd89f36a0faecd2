"""What runs on another machine, and the messages both ways."""

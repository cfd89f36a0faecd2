"""Speed and memory, side by side in one run; never part of the tests."""

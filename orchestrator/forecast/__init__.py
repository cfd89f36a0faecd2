"""What trials cost before they run: time, memory, disk, hours of GPUs."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)

"""Colours of groups, in reports and on the pages of `view`."""

GROUP_COLOURS = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#0072b2")
"""Okabe and Ito's colours, which colour-blind readers can distinguish."""

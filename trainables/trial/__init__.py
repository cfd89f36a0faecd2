"""One trial: trained and measured, or measured again on the weights that it kept."""

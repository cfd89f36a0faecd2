"""What one trial does: train a model, measure it. Needs torch, numpy, scipy and pydantic; neither Ray nor SQL."""

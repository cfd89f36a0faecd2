"""Trials in other programs' logs, MLflow's and TensorBoard's: written by the driver from what the store has of them."""

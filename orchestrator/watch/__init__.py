"""Everyone who follows a sweep: terminal, metrics of Ray, MLflow, TensorBoard."""

"""Stages of a proof. Each module has `questions(device, folder)`, which yields its checks."""

"""The stages of a proof. Each module has `questions(device, folder)`, which yields the checks of
its stage."""

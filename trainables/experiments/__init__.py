"""Trials that train no language model: run one, and leave its result as a file.

Each kind has a module of its name here, whose `measure(config, runtime)` gives its measurements by name and version.
"""

from trainables.experiments.experiment_run import run_experiment

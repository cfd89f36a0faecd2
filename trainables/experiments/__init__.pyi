from .kinds import measure_experiment as measure_experiment

from __future__ import annotations

import numpy as np
import pandas as pd

from orchestrator.analysis.spectra import trial_spectra


def test_zero_spectra_are_excluded() -> None:
    spectra = {
        "good": np.array([2.0, 1.0]),
        "zero": np.zeros(3),
        "infinite": np.array([np.inf, 1.0]),
        "none": np.array([np.nan, 1.0]),
        "empty": np.array([]),
    }
    rows = [
        {
            "trial_id": name,
            "name": name,
            "group": name,
            "state": "done",
            "press_rank": 2.0,
            "press_tolerance": 0.1,
        }
        for name in spectra
    ]
    frame = pd.DataFrame(rows).assign(sigma_max=2.0)
    assert [spectrum.trial_id for spectrum in trial_spectra(frame, spectra, by_group=True)] == [
        "good"
    ]

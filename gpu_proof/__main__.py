"""`python -m gpu_proof`, the same as `python sweep.py prove-gpu`."""

import sys

from gpu_proof.command import main

sys.exit(main())

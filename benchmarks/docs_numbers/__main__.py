"""The command."""

import sys

from benchmarks.docs_numbers.check import main

sys.exit(main())

"""The numbers of README.md, docs/results.md and docs/today.md, from the results store: see
`check`."""

from benchmarks.docs_numbers.check import main as main
from benchmarks.docs_numbers.check import with_numbers as with_numbers
from benchmarks.docs_numbers.results import cost as cost

#!/bin/sh
# Remove files that a run does not need from a virtual environment: installers, tests, headers, static libraries, Ray's
# Java, Arrow's remote calls.
set -eu
venv=$1
packages=$(echo "$venv"/lib/python3*/site-packages)
before=$(du -sm "$venv" | cut -f1)
"$venv/bin/python" -m pip uninstall --quiet --yes pip
cd "$packages"
find . -type d -name tests -prune -exec rm -rf {} +
find . -name '*.a' -delete
rm -rf torch/include torch/share torch/test torch/bin/test_* torch/bin/protoc* numpy/_core/include ray/jars
rm -rf pyarrow/include pyarrow/*flight*
echo "$venv: $before MB, trimmed to $(du -sm "$venv" | cut -f1) MB"

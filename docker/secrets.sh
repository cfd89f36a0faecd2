#!/bin/sh
# Make the token of the Ray cluster and the password of the results store, in docker/secrets. Existing files are kept.
set -eu
umask 077
folder=$(dirname "$0")/secrets
mkdir -p "$folder"
for name in ray_token database_password; do
    [ -s "$folder/$name" ] || od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$folder/$name"
done
printf 'postgres:5432:sweeps:sweeps:%s\n' "$(cat "$folder/database_password")" >"$folder/pgpass"
echo "The secrets are in $folder; only you can read them."

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

ROOT = Path(__file__).parents[2]
POLICY = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
)
UNCHECKED = 3
"""Number of requests without credentials that the server accepts: they create a user with a key."""


class ObjectStore:
    bucket = "sweeps-of-a-test"

    def __init__(self, process: subprocess.Popen[str], cache: Path) -> None:
        self._process = process
        self.endpoint = f"http://127.0.0.1:{self._answer()}"
        self.environment: dict[str, str] = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "XDG_CACHE_HOME": str(cache),
        }
        self._make_user()
        self.client = boto3.client("s3", **self._client_options())
        self.client.create_bucket(Bucket=self.bucket)

    @property
    def secret(self) -> str:
        return self.environment["AWS_SECRET_ACCESS_KEY"]

    def off(self) -> None:
        self._ask("off")

    def on(self) -> None:
        self._ask("on")

    def keys(self, prefix: str) -> dict[str, str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        return {entry["Key"]: entry["ETag"] for page in pages for entry in page.get("Contents", [])}

    def _make_user(self) -> None:
        self.environment |= {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}
        iam = boto3.client("iam", **self._client_options())
        iam.create_user(UserName="user")
        key = iam.create_access_key(UserName="user")["AccessKey"]
        iam.put_user_policy(UserName="user", PolicyName="everything", PolicyDocument=POLICY)
        self.environment["AWS_ACCESS_KEY_ID"] = key["AccessKeyId"]
        self.environment["AWS_SECRET_ACCESS_KEY"] = key["SecretAccessKey"]

    def _client_options(self) -> Mapping[str, str]:
        return {
            "endpoint_url": self.endpoint,
            "region_name": "us-east-1",
            "aws_access_key_id": self.environment["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": self.environment["AWS_SECRET_ACCESS_KEY"],
        }

    def _ask(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        assert self._answer() == word

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.object_store"],
        cwd=ROOT,
        env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(UNCHECKED)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        store = ObjectStore(process, folder / "cache")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in store.environment.items():
                patch.setenv(name, value)
            yield store
    finally:
        process.kill()
        process.wait()


def serve() -> None:
    """Print the server's port, and serve until standard input ends.

    A line "off" closes the port, and "on" opens it again with the same buckets. Each line is
    echoed.
    """
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    print(port, flush=True)
    for line in sys.stdin:
        if line.strip() == "off":
            server.stop()
            assert server._server is not None
            server._server.server_close()
        else:
            server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
            server.start()
        print(line.strip(), flush=True)


if __name__ == "__main__":
    serve()

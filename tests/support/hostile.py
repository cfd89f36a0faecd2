"""Hypothesis strategies for hostile texts, values, configs and files."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from trainables.config import (
    CorpusConfig,
    CustomConfig,
    GssConfig,
    MosConfig,
    PressNoiseConfig,
    TrialConfig,
    TrueRankConfig,
)

NASTY_TEXTS = (
    "", " ", ".", "..", "../../outside", "/outside", "~", "a/b", "a\\b", "-x", "--help",
    "a\nb", "a\rb", "\t",
    "\x1b[2J\x1b[31mred",
    "\x9b31m", "\u202eltr", "e\u0301", "\U0001f600", "x" * 300, "é" * 200, "%s%n{0}{x}",
    "{{7*7}}", "$(touch outside)",
    "`touch outside`", "'; drop table trial; --", "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>', "[red]x[/red]",
    "=1+1", "NaN", "null", "true", "1e999", "9" * 5000,
    "[" * 5000, '{"a":' * 2000, "-" * 3000, "0x10", "\uff11", "\udc80\udcff",
)  # fmt: skip
texts = st.sampled_from(NASTY_TEXTS) | st.text(max_size=30)
words = st.sampled_from(NASTY_TEXTS) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30
)
"""Words of a command line. They contain no NUL, and invalid UTF-8 only as single bytes."""
numbers = (
    st.integers()
    | st.floats()
    | st.sampled_from([0, -1, 1, 2**31, 2**63, 10**30, 10**400, 1e308, 5e-324, -0.0, True, False])
)
values = st.recursive(
    st.none() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
CORPUS = CorpusConfig(name="pydocs", sha256="0" * 64)
CONFIGS: tuple[dict[str, Any], ...] = tuple(
    json.loads(config.model_dump_json())
    for config in (
        TrialConfig(seed=1, corpus=CORPUS, output_layer=GssConfig(c=-1.5, k=2.5)),
        TrialConfig(seed=2, corpus=CORPUS, output_layer=MosConfig(mixtures=3)),
        TrialConfig(
            seed=1,
            corpus=CORPUS,
            output_layer=CustomConfig(layer="Mine", sha256="2" * 64, settings={"width": 3}),
        ),
        PressNoiseConfig(seed=3),
        TrueRankConfig(
            seed=4, corpus=CorpusConfig(name="markov", sha256="1" * 64), variant="noise"
        ),
    )
)


def paths_in(content: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = (
        content.keys()
        if isinstance(content, dict)
        else range(len(content))
        if isinstance(content, list)
        else ()
    )
    return [
        path for key in keys for path in ((*prefix, key), *paths_in(content[key], (*prefix, key)))
    ]


@st.composite
def spoiled(draw: Callable[..., Any], originals: tuple[Any, ...]) -> Any:
    content = copy.deepcopy(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(paths_in(content)))
        target = content
        for key in path:
            target = target[key]
        match draw(st.sampled_from(("replace", "add", "remove"))):
            case "replace":
                target[last] = draw(values)
            case "add" if isinstance(target, dict):
                target[draw(texts)] = draw(values)
            case "remove":
                del target[last]
        if not paths_in(content):
            break
    return content


@st.composite
def damaged(draw: Callable[..., Any], originals: tuple[bytes, ...]) -> bytes:
    content = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(0, min(len(content), 400))) | st.integers(0, len(content)))
        length = draw(st.integers(0, 16))
        match draw(st.sampled_from(("cut", "change", "insert", "double"))):
            case "cut":
                del content[start:]
            case "change":
                content[start : start + length] = draw(st.binary(min_size=length, max_size=length))
            case "insert":
                content[start:start] = draw(st.binary(max_size=16))
            case "double":
                content[start:start] = content[start : start + length]
    return bytes(content)

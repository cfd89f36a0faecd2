"""Check the English of docstrings, comments, messages and pages against docs/style.md."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ["benchmarks", "docker", "docs", "gpu_proof", "orchestrator"]
ROOMS += ["search_spaces", "skills", "tests", "trainables"]
INSTEAD = {
    r"lack(s|ed|ing)?": "is missing, has no",
    r"anew|afresh": "again",
    r"amiss": "wrong",
    r"puts? (it )?right": "repair, correct",
    r"becomes? of": "the outcome of",
    r"(comes?|came) to": "reaches, is",
    r"but for": "except",
    r"(hold|held|holds) against": "compared with",
    r"(reckon|mend)(s|ed|ing)?": "estimate, repair",
    r"(who|what|which|whose)(so)?ever": "any, the caller",
    r"so (many|long|much|lately|often)": "the number, the time",
    r"tells?|told|says?|said": "print, report, record, show",
    r"(is|are) (?-i:none)": "does not exist, is not a",
    r"that there (is|are|was|were)": "existing",
    r"where (there|it|no|an?|the|that|this|they|one|some|none)": "if, when",
    r"nobody|no one": "no user, none of",
    r"besides?": "also, next to",
    r"for ever": "without end",
    r"stands?|lies?|lay": "is",
}
AVOID = {re.compile(rf"\b({words})\b", re.IGNORECASE): use for words, use in INSTEAD.items()}
FIRST_WORDS = re.compile(
    r"(Of|Wh(ere|at|ether|o|ose|ich)|Th(at|ose|e same)|Such|So|As|By|All|None|Nothing|With)\b"
)


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else []:
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                yield part.lineno, str(part.value.value)


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), text, flags=re.S)
        yield from enumerate(text.splitlines(), 1)
        return
    in_tests = "tests" in path.parts  # whose other strings are programs and data
    yield from _docstrings(ast.parse(text)) if in_tests else ()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_message = not in_tests and len(token.string.split()) >= 5  # shorter: keys and names
        if token.type == tokenize.COMMENT or is_message:
            yield token.start[0], token.string


def _offences(path: Path) -> Iterator[str]:
    for line, text in _prose(path):
        for pattern, use in AVOID.items():
            for match in pattern.finditer(text):
                number = line + text.count("\n", 0, match.start())
                yield f"{path.relative_to(ROOT)}:{number}: {match[0]!r}: write {use}"
    if path.suffix == ".py":
        for line, text in _docstrings(ast.parse(path.read_text(encoding="utf-8"))):
            if FIRST_WORDS.match(text):
                yield f"{path.relative_to(ROOT)}:{line}: {text[:30]!r}: begin with a verb or a noun"


if __name__ == "__main__":
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*.[mp][dy]")]
    pages = [path for path in (*ROOT.glob("*.[mp][dy]"), *paths) if path.name != "style.md"]
    sys.exit("\n".join(line for path in sorted(pages) for line in _offences(path)) or 0)

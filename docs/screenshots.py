"""Take the screenshots of README.md and docs/ again, from the results in a storage. Needs Chromium.

    python docs/screenshots.py results                             # writes those of docs/
    python docs/screenshots.py results --scale smoke --out /tmp    # other results, other folder

The storage needs reports of `gss_grid --all-trials`, `softcap` and `spam`. Without its report, a
screenshot stays unchanged."""

from __future__ import annotations

import base64
import io
import tempfile
import time
from argparse import ArgumentParser, RawTextHelpFormatter
from pathlib import Path

from PIL import Image

from orchestrator.store import StudyKey, open_store
from tests.end_to_end.conftest import own_address, viewed
from tests.support.browser import Browser


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawTextHelpFormatter)
    parser.add_argument("storage", type=Path, help="folder that holds reports/ and results.db")
    parser.add_argument("--scale", default="quick")
    parser.add_argument("--corpus", default="ptb")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        take_reports(browser, options.storage.resolve(), options.scale, options.corpus, options.out)
        grid = StudyKey(study="gss_grid", scale=options.scale, corpus=options.corpus)
        take_view(browser, options.storage, grid, options.out)


def take_reports(browser: Browser, storage: Path, scale: str, corpus: str, out: Path) -> None:
    for name, study, text, file, width, height in (
        ("scatter", "gss_grid", corpus, "test_perplexity_against_press_rank.svg", 840, None),
        ("softcap", "softcap", corpus, "lines_over_cap.svg", 465, None),
        ("spam", "spam", "none", "least_embedding_width_over_V.svg", 840, None),
        ("report", "gss_grid", corpus, "report.html", 860, 1226),
    ):
        key = StudyKey(study=study, scale=scale, corpus=text)
        path = storage / "reports" / key.variant / file
        picture = "-".join((name, *[text] * (text != "none"), scale)) + ".png"
        if path.exists():
            browser.open(path.as_uri(), width=width)
            take(browser, out / picture, width, height)
        else:
            print(f"{picture}: not taken. There is no {path}")


def take_view(browser: Browser, storage: Path, key: StudyKey, out: Path) -> None:
    with open_store(str(storage / "results.db"), create=False) as store:
        trials = [row.trial_id[:12] for row in store.trials(key)[:3]]
    compare = "/compare?" + "&".join(f"trial={start}" for start in trials)
    with viewed(storage) as link:
        browser.open(link, width=1000)
        for name, address, graph, width, height, dark in (
            ("view-study", f"/study/{key.variant}", "chosen", 1000, 1480, False),
            ("view-trial", f"/trial/{trials[0]}", "spectra", 1000, 1330, True),
            ("view-side-by-side", compare, "spectra", 400, None, False),
        ):
            browser.open(own_address(link) + address, width=width, dark=dark)
            browser.wait_until(f"document.querySelector('#{graph} .scatterlayer') !== null")
            take(browser, out / f"{name}.png", width, height)


def take(browser: Browser, path: Path, width: int, height: int | None) -> None:
    time.sleep(1)  # figures move to their places
    browser.evaluate("window.root = document.documentElement.getBoundingClientRect()")
    own_width, own_height = browser.evaluate("[root.width, root.height]")
    clip = {"x": 0, "y": 0, "width": own_width, "height": height or own_height}
    clip["scale"] = width / own_width
    taken = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    picture = Image.open(io.BytesIO(base64.b64decode(taken["data"]))).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path)


if __name__ == "__main__":
    main()

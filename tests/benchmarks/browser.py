"""A headless browser, where this machine has one: what a page looks like to it, and what it complains about."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import escape, unescape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FOUND: Final = os.environ.get("ACTORGRAPH_TEST_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
"""The browser's program; None where there is none."""

QUIET: Final = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
]

LOOK: Final = """
<script>
addEventListener("load", () => {
  const seen = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument;
    const pictures = [...page.querySelectorAll("figure svg")];
    const letters = pictures.flatMap(svg => {
      const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      return [...svg.querySelectorAll("text")].map(text => parseFloat(text.getAttribute("font-size")) * scale);
    });
    const outside = pictures.flatMap(svg => {
      const frame = svg.getBoundingClientRect();
      return [...svg.querySelectorAll("text")].filter(text => {
        const box = text.getBoundingClientRect();
        return box.left < frame.left - 1 || box.right > frame.right + 1;
      }).map(text => text.textContent);
    });
    return {width: page.documentElement.clientWidth, needed: page.documentElement.scrollWidth,
            pictures: pictures.length, columns: new Set(pictures.map(svg => svg.getBoundingClientRect().left)).size,
            smallest: Math.min(...letters), outside};
  });
  const told = document.createElement("pre");
  told.id = "seen";
  told.textContent = JSON.stringify(seen);
  document.body.append(told);
});
</script>
"""


@dataclass(frozen=True)
class View:
    """A page as it came out at one width."""

    width: int
    needed: int
    """How wide the page would have to be so that nothing must be moved sideways."""
    pictures: int
    columns: int
    smallest: float
    """Pixels of the smallest letters in a picture."""
    outside: list[str]
    """Words that leave their picture at a side."""


def look(page: str, widths: Sequence[int], folder: Path) -> tuple[list[View], list[str]]:
    """Show a page at some widths; return what came out, and what the browser's console was told."""
    assert FOUND is not None
    frames = "".join(f'<iframe width="{width}" height="900" srcdoc="{escape(page)}"></iframe>' for width in widths)
    host = folder / "host.html"
    host.write_text(f'<!doctype html><link rel="icon" href="data:,"><body>{LOOK}{frames}</body>', "utf-8")
    words = [FOUND, *QUIET, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run([*words, host.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    told = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert told is not None, done.stderr
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return [View(**each) for each in json.loads(unescape(told[1]))], complaints

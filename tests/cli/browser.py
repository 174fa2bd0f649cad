"""A page in headless Chromium: what it looks like there, as numbers."""

import html
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
          "--disable-background-networking", "--disable-component-update", "--disable-sync"]
_TIME_LIMIT_S = 120

# Put into a copy of the page: measures, and leaves what it found as the page's title.
_MEASURE = """<script>
  const shown = [...document.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().width);
  const box = e => e.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom;
  const cut = [], overlapping = [];
  for (const svg of shown) {
    const texts = [...svg.querySelectorAll("text")];
    for (const [i, t] of texts.entries()) {
      const a = box(t), s = box(svg);
      if (a.left < s.left || a.right > s.right || a.top < s.top - 1 || a.bottom > s.bottom + 1) cut.push(t.textContent);
      for (const u of texts.slice(i + 1))
        if (meet(a, box(u))) overlapping.push(t.textContent + " | " + u.textContent);
    }
  }
  document.title = JSON.stringify({
    width: innerWidth, overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    background: getComputedStyle(document.body).backgroundColor,
    drawings: shown.length, loaded: performance.getEntriesByType("resource").length,
    cut: cut, overlapping: overlapping});
</script>"""


def measure(page, width, scheme):
    """How the HTML file `page` comes out in a window of that width, in a "dark" or "light" scheme."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise unittest.SkipTest("no chromium on this machine: the page is not looked at")
    with tempfile.TemporaryDirectory(prefix="kvick-browser-") as folder:
        copy = pathlib.Path(folder, "page.html")
        copy.write_text(page.read_text("utf-8").replace("</body>", _MEASURE + "</body>"), "utf-8")
        # A frame, because a window has a least width.
        frame = pathlib.Path(folder, "frame.html")
        frame.write_text(f'<iframe src="page.html" width="{width}" height="900"></iframe>'
                         "<script>onload = () => { document.title ="
                         " frames[0].document.title }</script>", "utf-8")
        done = subprocess.run(
            [chromium, *_FLAGS, f"--user-data-dir={folder}/profile",
             "--allow-file-access-from-files",
             f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
             "--window-size=1400,1000", "--dump-dom", frame.as_uri()],
            capture_output=True, text=True, check=True, timeout=_TIME_LIMIT_S)
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    if title is None:
        raise AssertionError(f"chromium did not run the page: {done.stdout}\n{done.stderr}")
    return json.loads(html.unescape(title[1]))

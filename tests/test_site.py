"""The built documentation, and pages about fits, fit their readers' screens; `make docs` builds the former."""

from __future__ import annotations

import functools
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from minmaxcon_problems.fair_auc import FairAUCClassifier
from tests.problems.fair_auc.estimator.samples import biased_rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (1280, 390)  # a small desktop and a phone

# Loads each page in a frame of each width, waits for the mathematics, and lists what is wider than its place. On a
# phone a wide block may scroll by itself, but the page may not; on a desktop nothing needs to scroll sideways.
HARNESS = """<!doctype html><meta charset="utf-8"><body><pre id="out"></pre><script>
const found = [];
async function look(page, width) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  await new Promise(loaded => { frame.onload = loaded; frame.src = "/" + page; document.body.append(frame); });
  const inside = frame.contentDocument, view = frame.contentWindow;
  if (view.MathJax?.startup?.promise) await view.MathJax.startup.promise;
  await new Promise(rested => setTimeout(rested, 30));
  const say = (what, text) => found.push(`${page} at ${width}: ${what}: ${text.slice(0, 70)}`);
  const scrolls = start => {
    for (let e = start; e && !e.matches(".bd-article"); e = e.parentElement)  // the article scrolls
      if (["auto", "scroll"].includes(view.getComputedStyle(e).overflowX)) return true;
    return false;
  };
  const wide = inside.scrollingElement.scrollWidth - width;
  if (wide > 0) say(`the page is ${wide} px too wide`, "");
  const text = ":is(img, p, li, dt, dd, td, code, h1, h2, h3):is(.bd-article *, .prev-next-area *)";
  for (const e of inside.querySelectorAll(text)) {
    const past = e.getBoundingClientRect().right - width;
    if (past > 1 && !scrolls(e)) say(`${e.tagName} ends ${Math.round(past)} px too far`, e.textContent || e.src);
  }
  for (const e of inside.querySelectorAll(":is(pre, div.math, table, img):is(.bd-article *)")) {
    const box = e.closest(".pst-scrollable-table-container") ?? e;
    const by = box.scrollWidth - box.clientWidth;
    if (by > 1 && (width >= 1000 || !scrolls(e))) say(`${e.tagName} is cut by ${by} px`, e.textContent);
    if (e.tagName === "IMG" && !e.naturalWidth) say("no picture", e.src);
  }
  for (const e of inside.querySelectorAll("mjx-merror")) say("not TeX", e.textContent);
  for (const e of inside.querySelectorAll(".bd-article .math"))
    if (!e.querySelector("mjx-container")) say("mathematics is not typeset", e.textContent);
  frame.remove();
}
(async () => {
  const todo = PAGES.flatMap(page => WIDTHS.map(width => [page, width]));
  const work = async () => { while (todo.length) await look(...todo.shift()); };
  await Promise.all(Array.from({length: 6}, work));
  document.getElementById("out").textContent = "DONE" + JSON.stringify(found);
})();
</script>"""


needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="needs chromium, which looks at the pages; `apt-get install chromium`"
)


@pytest.fixture(scope="module")
def site() -> Path:
    folder = Path(os.environ.get("MINMAXCON_SITE", Path(__file__).parents[1] / "docs" / "_build" / "html"))
    if not (folder / "index.html").is_file():
        pytest.skip(f"{folder} has no site: `make docs` builds it")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> list[str]:
    """The pages that people read; listings of source code may scroll."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return [page for page in found if not page.startswith(("_modules/", "_static/"))]


@contextmanager
def served(site: Path, pages: list[str]) -> Iterator[str]:
    """Serve a folder, and give the address of the page that looks at its pages."""
    harness = HARNESS.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS)).encode()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/harness":
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(harness)
            else:
                super().do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/harness"
        server.shutdown()


def cut(address: str, tmp_path: Path) -> list[str]:
    """Return what a browser finds cut or too wide."""
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    command += ["--window-size=1400,1000", "--virtual-time-budget=6000000", "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=800)
    result = re.search(r"DONE(\[.*?\])</pre>", done.stdout, flags=re.DOTALL)
    assert result, done.stderr[-2000:]
    found: list[str] = json.loads(html.unescape(result[1]))
    return found


@needs_browser
def test_nothing_is_cut_on_a_desktop_or_on_a_phone(site: Path, pages: list[str], tmp_path: Path) -> None:
    with served(site, pages) as address:
        found = cut(address, tmp_path)
    assert not found, "\n".join(found)


@needs_browser
def test_reports_and_results_in_notebooks_fit_both_screens(tmp_path: Path) -> None:
    """With the longest that they hold: several groups, limits and metrics, many features with long names."""
    rows = biased_rows(400, 0)
    features = pd.DataFrame(rows.X, columns=["income", "age_in_completed_years", "number_of_open_accounts_before", "x"])
    groups = np.where(np.arange(400) % 3 == 0, "a group whose name takes a line of its own", rows.group)
    settings = {"max_gap": [0.05, 0.1, 0.3], "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        several = FairAUCClassifier(["group", "inter_group"], **settings)
        several.fit(features, rows.y, sensitive_features=groups)
        network = FairAUCClassifier("group", model="mlp", max_gap=0.1, random_state=0, time_limit=1.0)
        network.fit(features, rows.y, sensitive_features=rows.group)
    site = tmp_path / "site"
    site.mkdir()
    several.report(site / "several.html", features, rows.y, sensitive_features=groups)
    network.report(site / "network.html", features, rows.y, sensitive_features=rows.group)
    shown = several._repr_mimebundle_()["text/html"]
    (site / "notebook.html").write_text(f'<!doctype html><meta charset="utf-8"><body>{shown}', encoding="utf-8")
    with served(site, [path.name for path in sorted(site.iterdir())]) as address:
        found = cut(address, tmp_path / "browser")
    assert not found, "\n".join(found)


@needs_browser
def test_what_is_too_wide_is_found(tmp_path: Path) -> None:
    (tmp_path / "wide.html").write_text("<!doctype html><body><div style='width:600px'>wide</div>", encoding="utf-8")
    with served(tmp_path, ["wide.html"]) as address:
        found = cut(address, tmp_path / "browser")
    assert found == ["wide.html at 390: the page is 218 px too wide: "]


def test_no_page_loads_anything_from_the_network(site: Path, pages: list[str]) -> None:
    loads = re.compile(r"<(?:script|img|iframe)[^>]*\bsrc=\"(?:https?:)?//|<link[^>]*stylesheet[^>]*\bhref=\"http")
    assert not [page for page in pages if loads.search((site / page).read_text(encoding="utf-8"))]


def test_no_two_files_differ_by_case_only(site: Path) -> None:
    names = Counter(path.as_posix().lower() for path in site.rglob("*"))
    assert not [name for name, count in names.items() if count > 1]


def test_every_page_has_the_navigation_and_every_internal_link_leads_somewhere(site: Path, pages: list[str]) -> None:
    known = {page: set(re.findall(r"\bid=\"([^\"]+)\"", (site / page).read_text(encoding="utf-8"))) for page in pages}
    broken = []
    for page in pages:
        text = (site / page).read_text(encoding="utf-8")
        if page != "search.html" and "bd-docs-nav" not in text:
            broken.append(f"{page}: no navigation")
        for target in re.findall(r"<a [^>]*href=\"([^\"]+)\"", text):
            path, _, place = html.unescape(target).partition("#")
            if "://" in path or path.startswith("mailto:"):
                continue
            goal = (Path(page).parent / path).as_posix() if path else page
            goal = os.path.normpath(goal)
            if not (site / goal).exists() or (place and goal in known and place not in known[goal]):
                broken.append(f"{page}: {target}")
    assert not broken, "\n".join(broken[:20])


def test_the_names_that_users_write_link(site: Path) -> None:
    text = (site / "howto" / "new_problem.html").read_text(encoding="utf-8")
    assert re.search(r"href=\"[^\"]*minmaxcon\.solvers\.SFLS\.html[^>]*><code[^>]*><span[^>]*>SFLS<", text)
    for name, words in (("core.Status", "out_of_reach"), ("solvers.SFLS", "theta")):
        page = next((site / "api" / "generated").glob(f"minmaxcon.{name}.html"))
        assert words in page.read_text(encoding="utf-8").lower(), page.name

"""Every page of the dashboard in a real browser, with the replies of made-up sessions."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from tests.dashboard.fixture_server import serving
from tests.dashboard.session import (
    Job,
    Session,
    Vertex,
    calm_job,
    empty,
    fifty_jobs,
    one_job,
    sixty_vertices,
)
from tests.servers.chromium import PHONE, Browser

# Pages of a session with one job, and texts that they show. J is the job, V2 its third vertex.
PAGES = {
    "overview": ["Slots in use", "orders backfill", "Running jobs"],
    "jobs": ["orders", "orders backfill"],
    "jobs/finished": ["orders backfill"],
    "job/J": ["Enrich with customer is the bottleneck", "7 vertices", "Totals by customer"],
    "job/J/overview/V2/detail": ["Back pressure begins here", "Watermark behind the clock"],
    "job/J/overview/V2/subtasks": ["10.0.0.1:40000", "10.0.0.3:40000"],
    "job/J/overview/V1/backpressure": ["Back pressure of this vertex", "High"],
    "job/J/overview/V2/watermarks": ["UTC"],
    "job/J/overview/V0/watermarks": ["This vertex has no input watermarks"],
    "job/J/overview/V2/metrics": ["numRecordsInPerSecond", "busyTimeMsPerSecond", "ms/s"],
    "job/J/overview/V2/flamegraph": ["json.loads", "44.3%", "2,055 samples"],
    "job/J/overview/V2/accumulators": ["cache-hits", "1250331"],
    "job/J/overview/V0/accumulators": ["have no accumulators"],
    "job/J/overview/V2/taskmanagers": ["executor-0", "10.0.0.2:40000"],
    "job/J/exceptions": [
        "KeyError: 'XBT'",
        "Order(customer='c-1881', amount=3, currency='XBT')",
        'File "/home/ada/shop/orders.py", line 48, in enrich',
        "The process of slot 2 ended",
    ],
    "job/J/timeline": ["Timeline", "Sink: Late orders"],
    "job/J/checkpoints": ["Checkpoint 71 was slow", "The cause is back pressure", "exactly once"],
    "job/J/checkpoints/71": ["It took 8.4 s", "Count in windows", "chk-71"],
    "job/J/checkpoints/68": ["Checkpoint expired before completing."],
    "job/J/skew": ["Totals by customer is skewed", "94%"],
    "job/J/configuration": ["fixed delay (10 attempts, 1 s)", "currency", "EUR"],
    "job/J/stdout": ["Standard output of the job master", "Nothing was printed"],
    "job/J/log": ["the job returns to checkpoint 65"],
    "task-managers": ["executor-0", "spark://10.0.0.1:7078"],
    "task-managers/executor-1": ["Slots in use", "G1 Young Generation", "orders"],
    "task-managers/executor-1/log": ["customer c-1881 is not in the cache", "40 lines"],
    "task-managers/executor-1/stdout": ["Nothing was printed"],
    "task-managers/executor-1/logs": ["driver.log"],
    "task-managers/executor-1/logs/driver.log": ["KeyError: 'XBT'"],
    "task-managers/executor-1/thread-dump": ["2 threads", "at price (prices.py:12)"],
    "task-managers/executor-1/profiler": ["New profile", "CPU", "Open", "The process has ended"],
    "job-manager": ["execution.checkpointing.interval", "3 settings"],
    "job-manager/metrics": ["Status.JVM.Memory.Heap.Used", "412 MB"],
    "job-manager/environment": ["OpenJDK 17.0.15", "-Xmx1g"],
    "job-manager/log": ["the job returns to checkpoint 65"],
    "job-manager/stdout": ["Nothing was printed"],
    "job-manager/logs": ["driver.out"],
    "job-manager/thread-dump": ["MainThread"],
    "job-manager/profiler": ["Profiles", "30"],
    "submit": ["No program yet", "firesteel run -m 127.0.0.1"],
    "nowhere": ["There is no such page"],
}

EMPTY_PAGES = {
    "overview": ["No job is running", "No job has ended yet"],
    "jobs": ["No jobs yet", "Submit a job"],
    "task-managers": ["No task manager has registered"],
}

CALM_PAGES = {
    "job/J": ["Source: Numbers → Print", "1 vertex"],
    "job/J/exceptions": ["No failures"],
    "job/J/checkpoints": ["No checkpoint yet"],
    "job/J/skew": ["Nothing to compare"],
    "job/J/configuration": ["Nothing is set"],
}


def _route(session: Session, page: str) -> str:
    if not session.jobs:
        return page
    job = session.jobs[0]
    for index in range(3):
        if f"/V{index}/" in page:
            page = page.replace(f"V{index}", job.vertex_id(index))
    return page.replace("job/J", f"job/{job.jid}")


def _visit(browser: Browser, address: str, session: Session, pages: dict[str, list[str]]) -> None:
    """Open the pages one after the other, as a user does who follows links."""
    browser.open(address)
    for page, texts in pages.items():
        browser.run("location.hash = arguments[0]", f"#/{_route(session, page)}")
        browser.see(*texts)
        too_wide = browser.run(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert too_wide <= 0, f"{page} is {too_wide} pixels wider than the window"
        assert browser.console() == [], page


def test_every_page_on_a_laptop(browser: Browser) -> None:
    session = one_job()
    with serving(session) as address, browser.without_messages():
        _visit(browser, address, session, PAGES)


@pytest.mark.slow
def test_every_page_on_a_phone_in_the_dark(browser: Browser) -> None:
    _visit_on_a_phone(browser, PAGES)


def test_some_pages_on_a_phone_in_the_dark(browser: Browser) -> None:
    some = ("job/J", "job/J/overview/V2/subtasks", "job/J/checkpoints/71", "submit")
    _visit_on_a_phone(browser, {page: PAGES[page] for page in some})


def _visit_on_a_phone(browser: Browser, pages: dict[str, list[str]]) -> None:
    session = one_job()
    browser.set_size(PHONE, phone=True)
    browser.set_colors("dark")
    with serving(session) as address, browser.without_messages():
        _visit(browser, address, session, pages)


@pytest.mark.parametrize(("session", "pages"), [(empty, EMPTY_PAGES), (calm_job, CALM_PAGES)])
def test_pages_without_data_say_so(browser: Browser, session, pages) -> None:
    made = session()
    with serving(made) as address, browser.without_messages():
        _visit(browser, address, made, pages)


def test_pages_opened_by_their_address(browser: Browser) -> None:
    session = one_job()
    with serving(session) as address, browser.without_messages():
        for page in ("job/J/checkpoints/71", "job/J/overview/V2/flamegraph"):
            browser.open(f"{address}#/{_route(session, page)}")
            browser.see(*PAGES[page])


def test_fifty_jobs_are_counted_searched_and_sorted(browser: Browser) -> None:
    with serving(fifty_jobs()) as address, browser.without_messages():
        browser.open(f"{address}#/jobs")
        browser.wait_for(lambda: len(browser.all("tbody tr")) == 50, "50 rows")
        counts = [re.sub(r"\s", "", tab.text) for tab in browser.all(".tabs a")]
        assert counts == ["All50", "Running30", "Finished10", "Canceled5", "Failed5"]
        browser.find("input[type=search]").send_keys("pipeline 07")
        browser.wait_for(lambda: len(browser.all("tbody tr")) == 1, "one row")
        browser.find("input[type=search]").send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.DELETE)
        browser.wait_for(lambda: len(browser.all("tbody tr")) == 50, "50 rows")
        browser.click("th button", "Duration")
        browser.click("th button", "Duration")
        browser.find("th[aria-sort=ascending]", "Duration")
        browser.click(".tabs a", "Failed")
        browser.wait_for(lambda: len(browser.all("tbody tr")) == 5, "five rows")


_IS_PAINTED = "return performance.getEntriesByName('job-graph-painted').length > 0"


def test_a_graph_of_sixty_vertices_is_drawn_in_under_a_second(browser: Browser) -> None:
    """The page needs less than a second of processor time, so this holds on a busy machine, too."""
    session = sixty_vertices()
    with serving(session) as address, browser.without_messages():
        route = f"{address}#/job/{session.jobs[0].jid}"
        seconds = []
        for _ in range(3):
            browser.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            browser.open(route)
            browser.wait_for(lambda: len(browser.all(".node")) == 60, "60 vertices")
            browser.wait_for(lambda: browser.run(_IS_PAINTED), "a picture of the graph")
            found = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
            # From the start of the navigation, all work of the page included.
            (spent,) = [one["value"] for one in found if one["name"] == "TaskDuration"]
            seconds.append(spent)
            browser.driver.execute_cdp_cmd("Performance.disable", {})
        browser.see("Step 5.0: map, filter is the bottleneck")
        browser.find(".node.root", "Bottleneck")
        assert 0 < min(seconds) < 1.0, seconds


def test_the_root_of_back_pressure_is_marked_in_the_graph(browser: Browser) -> None:
    session = one_job()
    with serving(session) as address, browser.without_messages():
        browser.open(f"{address}#/job/{session.jobs[0].jid}")
        assert "Enrich with customer" in browser.find(".node.root", "Bottleneck").text
        assert len(browser.all(".node.root")) == 1
        pressed = "return getComputedStyle(arguments[0]).getPropertyValue('--pressed-share')"
        shares = {
            node.text.splitlines()[0]: float(browser.run(pressed, node))
            for node in browser.all(".node")
        }
        assert shares["Source: Orders"] > 0.5
        assert shares["Parse → Check"] > 0.5
        assert shares["Sink: Kafka"] == 0


def test_a_vertex_opens_with_the_keyboard_and_closes_with_escape(browser: Browser) -> None:
    session = one_job()
    with serving(session) as address, browser.without_messages():
        browser.open(f"{address}#/job/{session.jobs[0].jid}")
        node = browser.find(".node", "Count in windows")
        browser.run("arguments[0].focus()", node)
        node.send_keys(Keys.ENTER)
        browser.find(".drawer h2", "Count in windows")
        assert browser.run("return document.activeElement.className") == "drawer"
        browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        browser.gone(".drawer")
        assert "Count in windows" in browser.driver.switch_to.active_element.text


def test_charts_grow_while_the_page_is_open(browser: Browser) -> None:
    session = one_job()
    session.refresh_interval = 200
    with serving(session) as address, browser.without_messages():
        job = session.jobs[0]
        browser.open(f"{address}#/job/{job.jid}/overview/{job.vertex_id(2)}/metrics")
        browser.wait_for(lambda: len(browser.all(".chart canvas")) == 3, "three charts")
        picker = browser.find(".field select")
        picker.send_keys("currentInputWatermark")
        browser.run("arguments[0].dispatchEvent(new Event('change', {bubbles: true}))", picker)
        browser.find(".chart-title", "currentInputWatermark")
        browser.click("[aria-label='Remove numRecordsInPerSecond']")
        browser.wait_for(
            lambda: "numRecordsInPerSecond" not in [t.text for t in browser.all(".chart-title")],
            "the removal",
        )


def test_subtasks_of_a_checkpoint_show_where_the_time_went(browser: Browser) -> None:
    session = one_job()
    with serving(session) as address, browser.without_messages():
        browser.open(f"{address}#/job/{session.jobs[0].jid}/checkpoints/71")
        browser.click(".details .expander", "Enrich with customer")
        browser.see("Where the time went", "wait for the barrier")
        assert len(browser.all(".phases-bar")) == 4


def test_flames_zoom_and_search(browser: Browser) -> None:
    session = one_job()
    with serving(session) as address, browser.without_messages():
        job = session.jobs[0]
        browser.open(f"{address}#/job/{job.jid}/overview/{job.vertex_id(2)}/flamegraph")
        browser.click(".flame", "enrich")
        browser.find("button", "Show all")
        assert not [flame for flame in browser.all(".flame") if "pickle.loads" in flame.text]
        browser.find(".flames + *")
        browser.find("input[placeholder=Function]").send_keys("json")
        browser.see("44.3% of the samples")
        browser.click(".segments button", "Waiting")
        browser.see("queue.get")


def test_a_flame_graph_appears_once_there_are_samples(browser: Browser) -> None:
    session = one_job()
    session.refresh_interval = 200
    job = session.jobs[0]
    job.requests_before_samples = 3
    with serving(session) as address, browser.without_messages():
        browser.open(f"{address}#/job/{job.jid}/overview/{job.vertex_id(2)}/flamegraph")
        browser.find(".flame", "enrich")
        assert job.requests_before_samples == 0
        browser.click("button", "Sample again")
        browser.find(".flame", "enrich")


def test_names_of_jobs_are_text_and_never_markup(browser: Browser) -> None:
    evil = "<img src=x onerror=alert(1)><b>bold</b>"
    session = Session([Job(evil, "RUNNING", [Vertex(evil, [], 1)])])
    with serving(session) as address, browser.without_messages():
        browser.open(f"{address}#/jobs")
        browser.see(evil)
        browser.run("location.hash = arguments[0]", f"#/job/{session.jobs[0].jid}")
        browser.see(evil, "1 vertex")
        assert browser.all("main b img, main img") == []


def test_a_job_that_is_not_known(browser: Browser) -> None:
    with serving(one_job()) as address, browser.without_messages():
        browser.open(f"{address}#/job/{'0' * 32}")
        browser.see("This job is not known")
        # The browser itself reports the status of a reply.
        messages = browser.console()
        assert all("404" in message for message in messages), messages


def test_a_server_that_is_gone_and_comes_back(browser: Browser) -> None:
    session = one_job()
    session.refresh_interval = 200
    with serving(session) as address:
        browser.open(f"{address}#/overview")
        browser.find(".connection", "Live")
    browser.find(".connection", "Offline")
    # The last known jobs stay on the screen.
    browser.see("orders backfill")
    with serving(session, urlsplit(address).port or 0):
        browser.find(".connection", "Live")
        messages = browser.console()
        browser.open("about:blank")
    assert all("net::" in message for message in messages), messages


def test_colors_follow_the_system_until_the_user_chooses(browser: Browser) -> None:
    with serving(one_job()) as address, browser.without_messages():
        browser.open(address)
        theme = "return document.documentElement.dataset.theme"
        browser.see("Overview")
        assert browser.run(theme) == "light"
        browser.set_colors("dark")
        browser.wait_for(lambda: browser.run(theme) == "dark", "the dark theme")
        browser.click("[aria-label='Light colors']")
        assert browser.run(theme) == "light"
        browser.open(address)
        browser.see("Overview")
        assert browser.run(theme) == "light"
        browser.run("localStorage.clear()")


def test_the_history_server_has_no_cluster(browser: Browser) -> None:
    session = one_job()
    session.history_server = True
    with serving(session) as address, browser.without_messages():
        browser.open(address)
        browser.see("Ended jobs", "History server")
        assert "Task managers" not in browser.text()
        browser.run("location.hash = arguments[0]", f"#/job/{session.jobs[0].jid}")
        browser.see("7 vertices")
        assert browser.all(".actions") == []


# The contrast of all visible texts with what is painted behind them, by WCAG's formula.
_CONTRAST = """
const canvas = document.createElement("canvas");
canvas.width = canvas.height = 1;
const context = canvas.getContext("2d", {willReadFrequently: true});
function painted(colors) {
  context.clearRect(0, 0, 1, 1);
  for (const color of colors) { context.fillStyle = color; context.fillRect(0, 0, 1, 1); }
  return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
}
function luminance(rgb) {
  const [r, g, b] = rgb.map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const weak = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const box = element.getBoundingClientRect();
  if (!own || !box.width || !box.height || element.closest("svg, option, noscript")) continue;
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.unshift(getComputedStyle(at).backgroundColor);
  const below = painted(layers);
  const text = painted([...layers, getComputedStyle(element).color]);
  const [a, b] = [luminance(below), luminance(text)].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  if (contrast < 4.5) weak.push(`${element.className} ${element.textContent.slice(0, 30)}: ${contrast.toFixed(2)}`);
}
return weak;
"""


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_all_texts_have_enough_contrast(browser: Browser, scheme: str) -> None:
    session = one_job()
    browser.set_colors(scheme)
    with serving(session) as address, browser.without_messages():
        browser.open(address)
        for page in (
            "overview",
            "job/J",
            "job/J/overview/V1/backpressure",
            "job/J/overview/V2/flamegraph",
            "job/J/checkpoints/71",
            "job/J/exceptions",
            "job/J/skew",
            "task-managers/executor-1/log",
        ):
            browser.run("location.hash = arguments[0]", f"#/{_route(session, page)}")
            browser.see(*PAGES[page])
            # Colors of the graph change slowly.
            browser.run("document.getAnimations().forEach((one) => one.finish())")
            assert browser.run(_CONTRAST) == [], page

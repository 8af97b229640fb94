"""Actions on a job: what the dashboard asks before, sends, and shows afterwards."""

from __future__ import annotations

from pathlib import Path

from tests.dashboard.fixture_server import serving
from tests.dashboard.session import one_job
from tests.servers.chromium import Browser


def _open_job(browser: Browser, address: str, jid: str) -> None:
    browser.open(f"{address}#/job/{jid}")
    browser.find(".actions")


def _more(browser: Browser, entry: str) -> None:
    browser.click(".menu summary")
    browser.click(".menu [role=menuitem]", entry)


def test_cancel_asks_first(browser: Browser) -> None:
    session = one_job()
    jid = session.jobs[0].jid
    with serving(session) as address, browser.without_messages():
        _open_job(browser, address, jid)
        _more(browser, "Cancel the job")
        browser.find("dialog h2", "Cancel the job?")
        browser.click("dialog button", "Back")
        browser.gone("dialog")
        assert session.changes == []
        _more(browser, "Cancel the job")
        browser.click("dialog button[type=submit]")
        browser.find(".toast", "is being canceled")
        assert session.changes == [("PATCH", f"/jobs/{jid}?mode=cancel", None)]


def test_a_savepoint_shows_its_location(browser: Browser) -> None:
    session = one_job()
    jid = session.jobs[0].jid
    with serving(session) as address, browser.without_messages():
        _open_job(browser, address, jid)
        browser.click(".actions button", "Savepoint")
        browser.find("dialog input[type=text]").send_keys("/savepoints")
        browser.click("dialog button[type=submit]")
        browser.find(".toast", "file:/savepoints/savepoint-1")
        [(method, path, body)] = session.changes
        assert (method, path) == ("POST", f"/jobs/{jid}/savepoints")
        assert body == {
            "target-directory": "/savepoints",
            "cancel-job": False,
            "formatType": "CANONICAL",
        }


def test_a_checkpoint_on_request(browser: Browser) -> None:
    session = one_job()
    with serving(session) as address, browser.without_messages():
        _open_job(browser, address, session.jobs[0].jid)
        _more(browser, "Take a checkpoint")
        browser.click("dialog button[type=submit]")
        browser.find(".toast", "Checkpoint 75 completed")
        assert session.changes[0][2] == {"checkpointType": "CONFIGURED"}


def test_stop_with_a_savepoint_and_drain(browser: Browser) -> None:
    session = one_job()
    jid = session.jobs[0].jid
    with serving(session) as address, browser.without_messages():
        _open_job(browser, address, jid)
        browser.click(".actions button", "Stop")
        browser.click("dialog input[type=checkbox]")
        browser.click("dialog button[type=submit]")
        browser.find(".toast", "has stopped with a savepoint")
        assert session.changes == [
            (
                "POST",
                f"/jobs/{jid}/stop",
                {"targetDirectory": None, "drain": True, "formatType": "CANONICAL"},
            )
        ]


def test_rescale_sends_the_bounds_of_every_vertex(browser: Browser) -> None:
    session = one_job()
    job = session.jobs[0]
    with serving(session) as address, browser.without_messages():
        _open_job(browser, address, job.jid)
        _more(browser, "Rescale")
        browser.click("[aria-label='More parallelism everywhere']")
        browser.click("dialog button[type=submit]")
        browser.find(".toast", "is being rescaled")
        [(method, path, body)] = session.changes
        assert (method, path) == ("PUT", f"/jobs/{job.jid}/resource-requirements")
        assert body == {
            job.vertex_id(index): {
                "parallelism": {"lowerBound": 1, "upperBound": vertex.parallelism + 1}
            }
            for index, vertex in enumerate(job.vertices)
        }


def test_a_server_with_a_token_is_asked_again_with_it(browser: Browser) -> None:
    session = one_job()
    session.token = "secret"
    with serving(session) as address, browser.without_messages():
        _open_job(browser, address, session.jobs[0].jid)
        _more(browser, "Cancel the job")
        browser.click("dialog button[type=submit]")
        browser.find("dialog [role=alert]", "This call needs the token of the server.")
        assert session.changes == []
        browser.find("dialog input[type=password]").send_keys("secret")
        browser.click("dialog button[type=submit]")
        browser.find(".toast", "is being canceled")
        assert len(session.changes) == 1
        browser.run("sessionStorage.clear()")
        # The browser itself reports the status of the first reply.
        assert all("401" in message for message in browser.console())


def test_an_ended_job_has_no_actions(browser: Browser) -> None:
    session = one_job()
    with serving(session) as address, browser.without_messages():
        browser.open(f"{address}#/job/{session.jobs[1].jid}")
        browser.see("Finished")
        assert browser.all(".actions") == []


def test_a_program_is_uploaded_and_run(browser: Browser, tmp_path: Path) -> None:
    session = one_job()
    program = tmp_path / "orders.py"
    program.write_text("print('orders')")
    with serving(session) as address, browser.without_messages():
        browser.open(f"{address}#/submit")
        browser.click(".card-aside button", "Upload")
        browser.find("dialog input[type=file]").send_keys(str(program))
        browser.click("dialog button[type=submit]")
        browser.find(".toast", "orders.py is uploaded.")
        method, path, form = session.changes[0]
        assert (method, path) == ("POST", "/jars/upload")
        assert 'filename="orders.py"' in form
        assert "print('orders')" in form

        browser.click("td button", "Run")
        arguments, parallelism, _ = browser.all("dialog .field input")
        arguments.send_keys("--input '/data of shops'")
        parallelism.send_keys("4")
        browser.click("dialog button[type=submit]")
        # The page of the new job.
        browser.see("7 vertices")
        method, path, body = session.changes[1]
        assert (method, path) == ("POST", f"/jars/{session.programs[0]['id']}/run")
        assert body == {
            "programArgsList": ["--input", "/data of shops"],
            "parallelism": 4,
            "savepointPath": None,
            "allowNonRestoredState": False,
        }


def test_a_process_is_profiled(browser: Browser) -> None:
    session = one_job()
    with serving(session) as address, browser.without_messages():
        browser.open(f"{address}#/task-managers/executor-1/profiler")
        browser.click(".card-aside button", "New profile")
        browser.click("dialog button[type=submit]")
        browser.gone("dialog")
        assert session.changes == [
            ("POST", "/taskmanagers/executor-1/profiler", {"mode": "CPU", "duration": 30})
        ]

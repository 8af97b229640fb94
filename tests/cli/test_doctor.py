from __future__ import annotations

import json
import socket
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from firesteel.cli.doctor import EXTRAS
from firesteel.cli.main import main


def findings(*arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    result = CliRunner().invoke(main, ["doctor", "--json", *arguments])
    found = json.loads(result.output)["findings"]
    return result.exit_code, {one["check"]: one for one in found}


def test_a_machine_that_runs_the_tests_is_fine() -> None:
    code, found = findings()
    assert code == 0
    assert {"Python", "Java", "Spark", "Cores", "Memory", "Disk", "Port", "Cluster"} <= set(found)
    assert found["Java"]["level"] == "ok"


def test_a_port_in_use_is_a_warning_with_advice() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, found = findings(f"-Drest.port={taken.getsockname()[1]}")
    assert code == 0
    assert found["Port"]["level"] == "warning"
    assert "firesteel session list" in found["Port"]["advice"]


@pytest.mark.parametrize("master", ["spark://127.0.0.1:1", "k8s://https://127.0.0.1:1", "spark://"])
def test_a_cluster_that_does_not_answer_is_an_error(master: str) -> None:
    code, found = findings(f"-Dfiresteel.spark.master={master}")
    assert code == (1 if "127" in master else 0)
    assert ("does not answer" in found["Cluster"]["text"]) == ("127" in master)


def test_a_cluster_that_answers() -> None:
    with socket.socket() as master:
        master.bind(("127.0.0.1", 0))
        master.listen()
        address = f"127.0.0.1:{master.getsockname()[1]}"
        code, found = findings(f"-Dfiresteel.spark.master=spark://127.0.0.1:1,{address}")
    assert code == 0
    assert found["Cluster"] == {
        "check": "Cluster",
        "level": "ok",
        "text": f"{address} answers",
        "advice": "",
    }


def test_a_cluster_without_an_address_is_not_taken_for_this_machine() -> None:
    _, found = findings("-Dfiresteel.spark.master=yarn")
    assert found["Cluster"]["level"] == "warning"
    assert "was not checked" in found["Cluster"]["text"]


def test_without_java_the_advice_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firesteel.spark.java._candidates", lambda: iter(()))
    code, found = findings()
    assert code == 1
    assert "pip install" in found["Java"]["advice"]


def test_a_wrong_setting_is_an_error() -> None:
    code, found = findings("-Dfiresteel.executionn=real-time")
    assert code == 1
    assert any("Did you mean" in one["advice"] for one in found.values())


def test_people_get_lines() -> None:
    output = CliRunner().invoke(main, ["doctor"]).output
    assert "ok       Python: 3." in output


def test_all_extras_for_users_are_checked() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"dev", "docs", "jre"}

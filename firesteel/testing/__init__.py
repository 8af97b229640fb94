"""Test harness for functions, operators, time and failures, without Spark."""

from firesteel.testing.connector_contract import (
    ContractViolationError,
    check_sink,
    check_source,
)
from firesteel.testing.faulty_file_system import (
    FaultyFileSystem,
    StorageFault,
    StorageFaultKind,
    with_faults,
)
from firesteel.testing.harness_slots import Fault
from firesteel.testing.job_harness import JobHarness
from firesteel.testing.list_sink import ListSink
from firesteel.testing.manual_clock import ManualClock
from firesteel.testing.operator_harness import OperatorHarness, OperatorSnapshot, WrongSubtaskError
from firesteel.testing.scripted_source import (
    Crash,
    KillProcess,
    Pause,
    ScriptedCrashError,
    ScriptedSource,
    Timed,
)

__all__ = [
    "ContractViolationError",
    "Crash",
    "Fault",
    "FaultyFileSystem",
    "JobHarness",
    "KillProcess",
    "ListSink",
    "ManualClock",
    "OperatorHarness",
    "OperatorSnapshot",
    "Pause",
    "ScriptedCrashError",
    "ScriptedSource",
    "StorageFault",
    "StorageFaultKind",
    "Timed",
    "WrongSubtaskError",
    "check_sink",
    "check_source",
    "with_faults",
]

from __future__ import annotations

import pickle

import pytest

from firesteel.common.typeinfo import RowTypeInfo, Types
from firesteel.datastream.output_tag import OutputTag


def test_the_id_alone_makes_it_equal() -> None:
    assert OutputTag("a", Types.INT()) == OutputTag("a", Types.STRING())
    assert OutputTag("a") != OutputTag("b")
    assert OutputTag("a") != "a"
    assert len({OutputTag("a"), OutputTag("a"), OutputTag("b")}) == 2


def test_it_pickles() -> None:
    copy = pickle.loads(pickle.dumps(OutputTag("a", Types.INT())))
    assert copy == OutputTag("a")
    assert copy.type_info == Types.INT()


def test_types() -> None:
    assert OutputTag("a").type_info == Types.PICKLED_BYTE_ARRAY()
    assert isinstance(OutputTag("a", [Types.INT(), Types.STRING()]).type_info, RowTypeInfo)


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="must be a non-empty str"):
        OutputTag("")
    with pytest.raises(TypeError, match="TypeInformation"):
        OutputTag("a", int)  # type: ignore[arg-type]

"""Windows in whole jobs: any channels, epochs, parallelism and faults give the same final windows."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.testing import Fault, JobHarness
from tests.properties.random_windows import expected_windows, kinds, streams, timed, window_job
from tests.thoroughness import examples

_faults = st.dictionaries(
    st.integers(1, 8), st.tuples(st.integers(0, 5), st.sampled_from(list(Fault))), max_size=4
)


@given(
    streams=streams,
    kind=kinds,
    parallelism=st.integers(1, 3),
    budget=st.integers(1, 12),
    seed=st.integers(0, 9),
    faults=_faults,
)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_final_windows_are_always_the_same(streams, kind, parallelism, budget, seed, faults):
    scripts = [timed(stream) for stream in streams]
    harness = JobHarness(
        lambda env: window_job(env, kind, scripts),
        parallelism=parallelism,
        records_per_epoch=budget,
        seed=seed,
    )
    places = harness.places()
    harness.run(
        {epoch: {places[place % len(places)]: fault} for epoch, (place, fault) in faults.items()}
    )
    assert Counter(harness.collected) == expected_windows(kind, chain.from_iterable(scripts))
    (count,) = [m["count"] for m in harness.metrics().values()]
    assert count == 0

from firesteel.datastream.functions import SinkFunction
from firesteel.testing import OperatorHarness


class Keep(SinkFunction):
    def open(self, runtime_context):
        self.seen = []

    def invoke(self, value, context):
        1 // (value - 13)
        self.seen.append(
            (
                value,
                context.timestamp(),
                context.current_processing_time(),
                context.current_watermark(),
            )
        )

    def close(self):
        self.seen.append("close")


def test_it_is_invoked_with_every_record_and_its_context():
    sink = Keep()
    with OperatorHarness.of(lambda s: s.add_sink(sink)) as harness:
        harness.process_watermark(40)
        harness.set_processing_time(7)
        harness.process_elements([1, 2], [50, 60])
        harness.process_element(3)
        assert sink.seen == [(1, 50, 7, 40), (2, 60, 7, 40), (3, None, 7, 40)]
    assert sink.seen[-1] == "close"


def test_a_failure_names_the_method_and_the_record(blames):
    blames(
        OperatorHarness.of(lambda s: s.add_sink(Keep())),
        [1, 13],
        operator="Sink: Unnamed",
        function=Keep.invoke,
    )

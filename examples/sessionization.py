"""Session windows: group the clicks of a user into visits with gaps of less than 30 minutes.

Clicks arrive up to ten minutes out of order. The job prints a visit when it has ended. A late click
prints its visit again with the click included. A click that is hours late goes to a side output.

Output, in any order:
    visit> ann 10:00 to 10:38, 3 clicks: home, search, cart
    visit> ben 10:05 to 10:05, 1 click: home
    visit> ann 13:00 to 13:00, 1 click: home
    visit> ann 12:40 to 13:00, 2 clicks: search, home
    visit> cat 16:00 to 16:00, 1 click: home
    too late> ben home at 10:20
"""

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import WatermarkGenerator
from firesteel.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import EventTimeSessionWindows

TOO_LATE = OutputTag("too late")
MINUTE = 60_000

# (user, page, time)
CLICKS = [
    ("ann", "home", "10:00"),
    ("ben", "home", "10:05"),
    ("ann", "cart", "10:38"),
    ("ann", "search", "10:20"),
    ("ann", "home", "13:00"),
    ("cat", "home", "16:00"),
    ("ann", "search", "12:40"),
    ("ben", "home", "10:20"),
]


def millis(clock):
    hours, minutes = clock.split(":")
    return (int(hours) * 60 + int(minutes)) * MINUTE


class TenMinutesBehind(WatermarkGenerator):
    """Like for_bounded_out_of_orderness, but with a watermark after every record."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - 10 * MINUTE - 1)

    def on_periodic_emit(self, output):
        pass


class Visit(ProcessWindowFunction):
    def process(self, key, context, elements):
        clicks = sorted(elements, key=lambda click: click[2])
        pages = ", ".join(page for _, page, _ in clicks)
        count = f"{len(clicks)} click{'s' if len(clicks) > 1 else ''}"
        yield f"{key} {clicks[0][2]} to {clicks[-1][2]}, {count}: {pages}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    by_time = WatermarkStrategy.for_generator(TenMinutesBehind).with_idleness(
        Duration.of_minutes(1)
    )
    by_time = by_time.with_timestamp_assigner(lambda click, _: millis(click[2]))
    visits = (
        env.from_collection(CLICKS)
        .assign_timestamps_and_watermarks(by_time)
        .key_by(lambda click: click[0])
        .window(EventTimeSessionWindows.with_gap(Time.minutes(30)))
        .allowed_lateness(Time.hours(3))
        .side_output_late_data(TOO_LATE)
        .process(Visit())
    )
    visits.print("visit")
    visits.get_side_output(TOO_LATE).map(lambda c: f"{c[0]} {c[1]} at {c[2]}").print("too late")

    env.execute("sessionization")


if __name__ == "__main__":
    main()

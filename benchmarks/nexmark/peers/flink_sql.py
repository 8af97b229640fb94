"""Nexmark on Flink SQL: the published queries, on the JVM engine in PyFlink's package.

``python -m benchmarks.nexmark.peers.flink_sql [backend]``, with the environment of PyFlink.
"""

import sys

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.nexmark.peers.turns import take_turns

PARALLELISM = 2

_EVENTS = """
CREATE TEMPORARY TABLE events (
  event_type INT,
  person ROW<id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING,
    state STRING, `dateTime` BIGINT, extra STRING>,
  auction ROW<id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,
    `dateTime` BIGINT, expires BIGINT, seller BIGINT, category BIGINT, extra STRING>,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    `dateTime` BIGINT, extra STRING>,
  `dateTime` AS TO_TIMESTAMP_LTZ(
    CASE event_type WHEN 0 THEN person.`dateTime` WHEN 1 THEN auction.`dateTime`
    ELSE bid.`dateTime` END, 3),
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'file://{directory}', 'format' = 'json')
"""

_VIEWS = (
    """
CREATE TEMPORARY VIEW person AS
SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state,
  `dateTime`, person.extra
FROM events WHERE event_type = 0
""",
    """
CREATE TEMPORARY VIEW auction AS
SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve,
  `dateTime`, TO_TIMESTAMP_LTZ(auction.expires, 3) AS expires, auction.seller, auction.category,
  auction.extra
FROM events WHERE event_type = 1
""",
    """
CREATE TEMPORARY VIEW bid AS
SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra
FROM events WHERE event_type = 2
""",
)

_WINNERS = """
SELECT A.id, A.itemName, A.seller, A.category, B.bidder, B.price, B.`dateTime` AS bid_time,
  ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.`dateTime` ASC) AS place
FROM auction A, bid B
WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
"""

_RANKS = (
    "TRUE",
    "price < 10000",
    "price >= 10000 AND price < 1000000",
    "price >= 1000000",
)


def _counts(what: str) -> str:
    return ", ".join(f"COUNT({what}) FILTER (WHERE {rank})" for rank in _RANKS)


_STATISTICS = f"{_counts('*')}, {_counts('DISTINCT bidder')}, {_counts('DISTINCT auction')}"
_DAY = "DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')"

QUERIES = {
    "q0": "SELECT auction, bidder, price, `dateTime`, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price, `dateTime`, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """
SELECT P.name, P.city, P.state, A.id
FROM auction A INNER JOIN person P ON A.seller = P.id
WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')
""",
    "q4": """
SELECT category, AVG(best) FROM (
  SELECT MAX(B.price) AS best, A.category
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  GROUP BY A.id, A.category
) GROUP BY category
""",
    "q5": """
SELECT C.auction, C.num, C.window_end FROM (
  SELECT auction, COUNT(*) AS num, window_start, window_end
  FROM HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
  GROUP BY auction, window_start, window_end
) C JOIN (
  SELECT MAX(num) AS most, window_start, window_end FROM (
    SELECT COUNT(*) AS num, window_start, window_end
    FROM HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
    GROUP BY auction, window_start, window_end
  ) GROUP BY window_start, window_end
) M ON C.window_start = M.window_start AND C.window_end = M.window_end AND C.num >= M.most
""",
    "q7": """
SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra
FROM bid B JOIN (
  SELECT MAX(price) AS highest, window_end
  FROM TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)
  GROUP BY window_start, window_end
) W ON B.price = W.highest
WHERE B.`dateTime` BETWEEN W.window_end - INTERVAL '10' SECOND AND W.window_end
""",
    "q8": """
SELECT P.id, P.name, P.window_start FROM (
  SELECT id, name, window_start, window_end
  FROM TUMBLE(TABLE person, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)
  GROUP BY id, name, window_start, window_end
) P JOIN (
  SELECT seller, window_start, window_end
  FROM TUMBLE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)
  GROUP BY seller, window_start, window_end
) A ON P.id = A.seller AND P.window_start = A.window_start AND P.window_end = A.window_end
""",
    "q9": f"""
SELECT id, itemName, seller, category, bidder, price, bid_time FROM ({_WINNERS}) WHERE place <= 1
""",
    "q11": """
SELECT bidder, COUNT(*), window_start, window_end
FROM SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)
GROUP BY bidder, window_start, window_end
""",
    "q14": """
SELECT auction, bidder, 0.908 * price,
  CASE WHEN HOUR(`dateTime`) BETWEEN 8 AND 18 THEN 'dayTime'
    WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
    ELSE 'otherTime' END,
  `dateTime`, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', ''))
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
""",
    "q15": f"SELECT {_DAY}, {_STATISTICS} FROM bid GROUP BY {_DAY}",
    "q16": f"""
SELECT channel, {_DAY}, MAX(DATE_FORMAT(`dateTime`, 'HH:mm')), {_STATISTICS}
FROM bid GROUP BY channel, {_DAY}
""",
    "q17": f"""
SELECT auction, {_DAY}, {_counts("*")}, MIN(price), MAX(price), AVG(price), SUM(price)
FROM bid GROUP BY auction, {_DAY}
""",
    "q18": """
SELECT bidder, auction, `dateTime`, price FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS place
  FROM bid
) WHERE place <= 1
""",
    "q19": """
SELECT auction, place, price, `dateTime`, bidder FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid
) WHERE place <= 10
""",
    "q20": """
SELECT B.auction, B.bidder, B.price, B.channel, B.`dateTime`, A.itemName, A.seller, A.expires
FROM bid B INNER JOIN auction A ON B.auction = A.id WHERE A.category = 10
""",
    "q21": r"""
SELECT auction, bidder, price, channel,
  CASE LOWER(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
    WHEN 'baidu' THEN '3' ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END
FROM bid
WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
  OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')
""",
    "q22": """
SELECT auction, bidder, price, channel,
  SPLIT_INDEX(url, '/', 3), SPLIT_INDEX(url, '/', 4), SPLIT_INDEX(url, '/', 5)
FROM bid
""",
}


def run(query: str, directory: str) -> None:
    configuration = Configuration()
    configuration.set_string("parallelism.default", str(PARALLELISM))
    configuration.set_string("table.local-time-zone", "UTC")
    configuration.set_string("taskmanager.memory.process.size", "4g")
    if len(sys.argv) > 1:
        configuration.set_string("state.backend.type", sys.argv[1])
    settings = EnvironmentSettings.new_instance().in_streaming_mode()
    tables = TableEnvironment.create(settings.with_configuration(configuration).build())
    tables.execute_sql(_EVENTS.format(directory=directory))
    for view in _VIEWS:
        tables.execute_sql(view)
    result = tables.sql_query(QUERIES[query])
    columns = ", ".join(
        f"c{number} {result.get_schema().get_field_data_type(number)}"
        for number in range(result.get_schema().get_field_count())
    )
    tables.execute_sql(
        f"CREATE TEMPORARY TABLE answers ({columns}) WITH ('connector' = 'blackhole')"
    )
    result.execute_insert("answers").wait()


if __name__ == "__main__":
    take_turns(run)

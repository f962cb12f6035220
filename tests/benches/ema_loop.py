"""The loop that people write first: poll a tick, decode it, keep one EMA of each symbol's one-second closes.

    python ema_loop.py HOST:PORT TOPIC PARTITIONS TICKS [FILE]

Reads so many single ticks and prints the seconds from the first to the last. With FILE, the EMAs of all bars go there,
one JSON array a line: symbol, start of the bar, EMA, or null before the window is full.
"""

import io
import json
import sys
import time
from pathlib import Path

import fastavro
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

HEADER_SIZE = 10  # Of the single-object encoding.
BAR_NS = 1_000_000_000
WINDOW = 38
ALPHA = 2 / (WINDOW + 1)


class Average:
    """A symbol's open bar and the average of the closes before it, which begins with the mean of the first window."""

    __slots__ = ("start_ns", "close", "closes", "ema")

    def __init__(self, start_ns):
        self.start_ns, self.close, self.closes, self.ema = start_ns, 0.0, 0, 0.0

    def close_bar(self):
        self.closes += 1
        if self.closes <= WINDOW:
            self.ema += self.close / WINDOW
        else:
            self.ema += (self.close - self.ema) * ALPHA


def main():
    brokers, topic, partitions, ticks, *files = sys.argv[1:]
    schema_file = Path(__file__).resolve().parents[2] / "schemas" / "avro" / "tick.avsc"
    schema = fastavro.parse_schema(json.loads(schema_file.read_text(encoding="utf-8")))
    bars = [] if files else None
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "ema-loop", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(int(partitions))])

    averages = {}
    started = None
    for _ in range(int(ticks)):
        message = consumer.poll(30.0)
        if message is None or message.error():
            sys.exit(f"no tick came: {message and message.error()}")
        if started is None:
            started = time.perf_counter()
        tick = fastavro.schemaless_reader(io.BytesIO(message.value()[HEADER_SIZE:]), schema)
        symbol, start_ns = tick["symbol"], tick["event_time_ns"] // BAR_NS * BAR_NS
        average = averages.get(symbol)
        if average is None:
            average = averages[symbol] = Average(start_ns)
        elif average.start_ns != start_ns:
            average.close_bar()
            if bars is not None:
                bars.append((symbol, average.start_ns, average.ema if average.closes >= WINDOW else None))
            average.start_ns = start_ns
        average.close = tick["price_e9"] / 1e9
    print(time.perf_counter() - started)
    consumer.close()
    if files:
        Path(files[0]).write_text("".join(json.dumps(bar) + "\n" for bar in bars), encoding="utf-8")


if __name__ == "__main__":
    main()

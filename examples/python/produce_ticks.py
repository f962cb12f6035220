#!/usr/bin/env python3
"""Publishes trades of a made-up market to Warptape's topic of ticks.

    python produce_ticks.py --brokers localhost:9092 --ticks 10000

Ends with status 0 once the broker has acknowledged every record, else with 1.
"""

import argparse
import random
import sys
import time

from confluent_kafka import Producer

from single_object import Schema

SCALE = 1_000_000_000  # Prices and sizes are whole numbers of 1e-9, times are nanoseconds.


def trades(count: int, symbols: int, seed: int):
    """Random walks, one trade a millisecond, ending now."""
    walk = random.Random(seed)
    cents = [walk.randrange(1_000, 100_000) for _ in range(symbols)]
    start_ns = time.time_ns() - count * 1_000_000
    for number in range(count):
        index = walk.randrange(symbols)
        cents[index] = max(1, cents[index] + walk.randrange(-5, 6))
        yield {
            "symbol": f"PYTHON:SYM{index}",
            "kind": "TRADE",
            "event_time_ns": start_ns + number * 1_000_000,
            # As a venue counts: no two runs give an id twice.
            "trade_id": start_ns // 1_000_000 + number,
            "side": walk.choice(["BUY", "SELL"]),
            "price_e9": cents[index] * (SCALE // 100),
            "size_e9": walk.randrange(1, 100) * SCALE,
        }


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--brokers", default="localhost:9092", metavar="HOST:PORT[,…]")
    arguments.add_argument("--topic", default="ticks")
    arguments.add_argument("--ticks", type=int, default=10_000)
    arguments.add_argument("--symbols", type=int, default=20)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()

    failures = []

    def delivered(error, _message):
        if error is not None:
            failures.append(error)

    schema = Schema("tick")
    # Idempotence: a retry within the producer neither doubles a record nor changes the order.
    # The partitioner is that of Java's clients and of Warptape.
    producer = Producer(
        {
            "bootstrap.servers": options.brokers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "partitioner": "murmur2_random",
        }
    )
    for tick in trades(options.ticks, options.symbols, options.seed):
        # The symbol as key: all ticks of a symbol go to one partition, in order.
        record = {"topic": options.topic, "key": tick["symbol"], "value": schema.encode(tick)}
        while True:
            try:
                producer.produce(**record, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)  # The queue is full: wait for acknowledgements.
        producer.poll(0)
    unsent = producer.flush(30)
    if failures or unsent:
        reason = f", first: {failures[0].str()}" if failures else ""
        print(f"{len(failures)} records refused, {unsent} not acknowledged{reason}", file=sys.stderr)
        return 1
    print(f"published {options.ticks} ticks to {options.topic}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

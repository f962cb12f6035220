#!/usr/bin/env python3
"""Publishes trades of a made-up market to Warptape's topic of ticks.

    python produce_ticks.py --brokers localhost:9092 --ticks 10000

Ends with status 0 once the broker has acknowledged every record, else with 1.
"""

import argparse
import random
import sys
import time

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from single_object import Schema

SCALE = 1_000_000_000  # Prices and sizes are whole numbers of 1e-9, times are nanoseconds.
SPACING_NS = 10_000_000  # 10,000 trades are a hundred seconds of a market: enough returns for a volatility.
TOPIC_WAIT_S = 60  # A pipeline that has just been started makes its topics.


def newest_ns(options) -> int:
    """Create time of the newest record of the topic; 0 where there is none yet."""
    admin = AdminClient({"bootstrap.servers": options.brokers})
    until = time.monotonic() + TOPIC_WAIT_S
    while True:
        # All topics are asked for: a broker may create one that is asked for by its name.
        topic = admin.list_topics(timeout=30).topics.get(options.topic)
        try:
            if topic is not None:
                places = [TopicPartition(options.topic, partition) for partition in topic.partitions]
                found = admin.list_offsets({place: OffsetSpec.max_timestamp() for place in places})
                return max(0, *(future.result().timestamp for future in found.values())) * 1_000_000
        except KafkaException as error:
            # A topic that was just made has no leaders yet.
            if time.monotonic() > until:
                sys.exit(f"{options.topic} cannot be read: {error}")
        if time.monotonic() > until:
            sys.exit(f"{options.brokers} has no topic {options.topic}: does a pipeline run on this cluster?")
        time.sleep(0.5)


def trades(options):
    """Random walks that end now and begin after all that is in the topic, so that no trade is late."""
    count, symbols, seed = options.ticks, options.symbols, options.seed
    walk = random.Random(seed)
    cents = [walk.randrange(1_000, 100_000) for _ in range(symbols)]
    now_ns = time.time_ns()
    start_ns = min(now_ns, max(now_ns - count * SPACING_NS, newest_ns(options) + 1_000_000))
    spacing_ns = (now_ns - start_ns) // max(1, count)
    for number in range(count):
        index = walk.randrange(symbols)
        cents[index] = max(1, cents[index] + walk.randrange(-5, 6))
        yield {
            "symbol": f"PYTHON:SYM{index}",
            "kind": "TRADE",
            "event_time_ns": start_ns + number * spacing_ns,
            # No two runs give an id twice.
            "trade_id": start_ns + number,
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
    for tick in trades(options):
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

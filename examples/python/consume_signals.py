#!/usr/bin/env python3
"""Prints Warptape's signals as JSON, one a line, and each of them once.

    python consume_signals.py --brokers localhost:9092

Warptape writes signals in transactions. With read_committed, what a transaction wrote that was then aborted is never
seen. Runs until Ctrl-C, until --signals have come, or until the end of the topic with --exit-at-end.
"""

import argparse
import json
import sys

from confluent_kafka import Consumer, KafkaError, KafkaException

from single_object import Schema

COMMIT_SIGNALS = 1_000  # The position in the topic is committed whenever so many were printed, and at the end.


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--brokers", default="localhost:9092", metavar="HOST:PORT[,…]")
    arguments.add_argument("--topic", default="signals")
    arguments.add_argument("--group", default="python-example")
    arguments.add_argument("--signals", type=int, metavar="N", help="end after so many")
    arguments.add_argument("--exit-at-end", action="store_true", help="end where every partition ends")
    options = arguments.parse_args()

    schema = Schema("signal")
    consumer = Consumer(
        {
            "bootstrap.servers": options.brokers,
            "group.id": options.group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    assigned, ended, seen = set(), set(), 0

    def on_assign(_consumer, partitions):
        assigned.update(partition.partition for partition in partitions)

    consumer.subscribe([options.topic], on_assign=on_assign)
    try:
        while options.signals is None or seen < options.signals:
            if options.exit_at_end and assigned and assigned == ended:
                break
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error():
                if message.error().code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(message.error())
                ended.add(message.partition())
                continue
            print(json.dumps(schema.decode(message.value())))
            seen += 1
            # After the output: a crash in between prints signals again rather than never.
            if seen % COMMIT_SIGNALS == 0:
                sys.stdout.flush()
                consumer.commit(asynchronous=False)
    except KeyboardInterrupt:
        pass
    finally:
        sys.stdout.flush()
        if seen % COMMIT_SIGNALS:
            consumer.commit(asynchronous=False)
        consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

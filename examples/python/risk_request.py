#!/usr/bin/env python3
"""Asks Warptape for the price and Greeks of a European option, and prints the result as JSON.

    python risk_request.py --brokers localhost:9092 --symbol BINANCE:BTCUSDT --strike 60000 --expiry-days 30

What is not given by --spot and --volatility is taken from the market: the last mid and the realised volatility of the
symbol as of the moment in which the pipeline takes the request. Ends with status 0 if there is an answer, with 1 if the
answer is an error or does not come within --timeout-s.
"""

import argparse
import json
import sys
import time
import uuid

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from single_object import Schema

YEAR_DAYS = 365
MARKET = {"from": "MARKET"}


def request(options) -> dict:
    """A risk request. Where the schema has a union of records, a pair names the branch."""
    asset = {
        "symbol": options.symbol,
        "spot": MARKET if options.spot is None else options.spot,
        "volatility": MARKET if options.volatility is None else options.volatility,
        "rate": options.rate,
        "dividend_yield": 0.0,
    }
    option = {
        "asset": 0,
        "kind": options.kind.upper(),
        "strike": options.strike,
        "expiry_years": options.expiry_days / YEAR_DAYS,
    }
    return {
        "request_id": f"python-{uuid.uuid4()}",  # Each id is answered once.
        "tenant": "example",
        "class": "INTERACTIVE",
        "deadline_ns": time.time_ns() + options.timeout_s * 1_000_000_000,
        "seed": 0,
        "problem": ("warptape.OptionValues", {"assets": [asset], "options": [option]}),
    }


def reader_at_end(options) -> Consumer:
    """A reader of the results that come from now on."""
    consumer = Consumer(
        {
            "bootstrap.servers": options.brokers,
            "group.id": "python-example-risk",  # It must have a name; nothing is committed in it.
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    topic = consumer.list_topics(options.results, timeout=30).topics[options.results]
    if topic.error is not None:
        raise KafkaException(topic.error)
    places = [TopicPartition(options.results, partition) for partition in topic.partitions]
    for place in places:
        _, place.offset = consumer.get_watermark_offsets(place, timeout=30)
    consumer.assign(places)
    return consumer


def send(options, key: str, value: bytes) -> None:
    """Writes one record. The partitioner is that of Java's clients and of Warptape, so that the request comes to the
    partition of the symbol's ticks."""
    failures = []
    producer = Producer(
        {"bootstrap.servers": options.brokers, "enable.idempotence": True, "partitioner": "murmur2_random"}
    )
    producer.produce(
        options.requests, key=key, value=value, on_delivery=lambda error, _message: failures.append(error)
    )
    if producer.flush(30) or failures[0] is not None:
        sys.exit(f"the request was not acknowledged: {failures[0].str() if failures else 'no answer'}")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--brokers", default="localhost:9092", metavar="HOST:PORT[,…]")
    arguments.add_argument("--requests", default="risk.requests", metavar="TOPIC")
    arguments.add_argument("--results", default="risk.results", metavar="TOPIC")
    arguments.add_argument("--symbol", required=True, metavar="VENUE:TICKER")
    arguments.add_argument("--kind", choices=["call", "put"], default="call")
    arguments.add_argument("--strike", type=float, required=True)
    arguments.add_argument("--expiry-days", type=float, required=True)
    arguments.add_argument("--spot", type=float)
    arguments.add_argument("--volatility", type=float)
    arguments.add_argument("--rate", type=float, default=0.0)
    arguments.add_argument("--timeout-s", type=int, default=30)
    options = arguments.parse_args()

    asked, results = request(options), Schema("risk_result")
    consumer = reader_at_end(options)
    try:
        send(options, options.symbol, Schema("risk_request").encode(asked))
        until = time.monotonic() + options.timeout_s
        while (left_s := until - time.monotonic()) > 0:
            message = consumer.poll(min(left_s, 1.0))
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            result = results.decode(message.value())
            if result["request_id"] == asked["request_id"]:
                print(json.dumps(result))
                return 1 if "code" in result["outcome"] else 0
    except KeyboardInterrupt:
        pass
    finally:
        consumer.close()
    print(f"no result of {asked['request_id']}: does a pipeline run on this cluster?", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

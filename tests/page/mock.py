"""An endpoint without a pipeline: the files of the live page, and a market that moves by itself.

usage: mock.py [PORT]    serves until it is interrupted
"""

import json
import math
import pathlib
import random
import sys
import threading
import time
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

FILES = pathlib.Path(__file__).resolve().parents[2] / "pipeline/src/endpoint/live/page"
MEDIA = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
LANES = 6
# Names that a page may stumble over: markup, quotes, right-to-left marks and letters, and one without an end.
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(2)</script>",
    "\"'&amp;&<b>",
    "\u202eDNALSI:KCATTA\u202c",
    "بورصة:شركة",
    "LONG:" + "W" * 400,
    "javascript:alert(3)",
    "__proto__",
    "NULL:\u0000\u0007\u200b",
]
SYMBOLS = [f"SYNTH:A{a}{b}" for a in "ABCDE" for b in "KLMN"] + HOSTILE
# A symbol without enough bars for indicators.
YOUNG = "SYNTH:AEN"
BARS = ["1s", "5m", "tick:100"]
ALERTS = ["EMA_CROSS_UP", "RSI_OVERSOLD", "BAND_BREAK_UP", "BAND_BREAK_DOWN", "Z_SCORE_HIGH"]


def iso(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Market:
    """The state of a process since its start. Tests plant faults by its fields."""

    def __init__(self):
        self.token = None
        self.lost_lane = None
        self.broker_lost = False
        self.skipped = 0
        self.left_out = 0
        self.lag_is_known = True
        self.has_verifier = True
        self.difference = None
        self.decisions_stand = False
        self.started = time.time()

    def ticks(self, now):
        return int((now - self.started) * 200_000)

    def candles(self, symbol, bar):
        count, now = 180, int(time.time())
        seed = random.Random(f"{symbol} {bar}")
        phase, level = seed.random() * 6, 50 + seed.random() * 400

        def price(at):
            noise = random.Random(f"{symbol} {at}").gauss(0, 0.0012)
            return level * (1 + 0.01 * math.sin(at / 31 + phase) + 0.004 * math.sin(at / 7) + noise)

        made, signals = [], []
        closes = [price(at) for at in range(now - count - 140, now)]
        for at in range(now - count, now):
            place = at - (now - count) + 140
            window = closes[place - 19 : place + 1]
            mean = sum(window) / 20
            deviation = math.sqrt(sum((one - mean) ** 2 for one in window) / 20)
            first, last = closes[place - 1], closes[place]
            high, low = max(first, last) * 1.0006, min(first, last) * 0.9994
            indicators = {
                "sma": mean,
                "ema_fast": sum(closes[place - 37 : place + 1]) / 38,
                "ema_slow": sum(closes[place - 99 : place + 1]) / 100,
                "bollinger_middle": mean,
                "bollinger_upper": mean + 2 * deviation,
                "bollinger_lower": mean - 2 * deviation,
                "vwap": mean * 1.0001,
                "rsi": 50 + 40 * math.sin(at / 9),
                "macd": deviation * math.sin(at / 11),
                "macd_signal": deviation * math.sin((at - 3) / 11),
                "macd_histogram": deviation * 0.2 * math.cos(at / 11),
                "zscore": (last - mean) / deviation,
                "<b>further</b>": last / mean,
            }
            if symbol == YOUNG:
                indicators = {}
            made.append(
                {
                    "start": iso(at - 1),
                    "end": iso(at),
                    "open": f"{first:.4f}",
                    "high": f"{high:.4f}",
                    "low": f"{low:.4f}",
                    "close": f"{last:.4f}",
                    "volume": f"{random.Random(at).random() * 900:.2f}",
                    "trades": 3 + at % 40,
                    "indicators": indicators,
                }
            )
            if at % 23 == 0:
                kind = ALERTS[at % len(ALERTS)]
                signals.append(self.signal(at, symbol, kind, bar, last))
        return {"symbol": symbol, "bar": bar, "candles": made, "signals": signals}

    def signal(self, number, symbol, kind, bar, value):
        return {
            "place": f"{number % 4}:{number}",
            "symbol": symbol,
            "kind": kind,
            "bar": bar,
            "end": iso(number),
            "value": value,
        }

    def entry(self, number):
        lane = number % LANES
        reasons = [
            f"Dispatch: batch {number} of 812 rows of 3 groups to lane {lane}: the lane is idle; the oldest row arrived "
            f"1.{number % 900:03} ms ago; the lane has 0 rows of 0 batches in flight, and the end is predicted in 0.412 ms"
        ]
        if number % 3 == 0:
            reasons.append(
                f"Place: group {number % 64} of partition 1 goes to lane {lane} with epoch 3: policy balanced 2"
            )
        if number % 7 == 0:
            reasons.append("Pause: partition 2 is paused: 70200 of its rows wait on the host, above the mark of 65536")
        if number % 11 == 0:
            reasons.append(f"Admit: task {HOSTILE[0]} of {HOSTILE[2]} (BATCH) is admitted; 4 tasks are known now")
        return {
            "place": f"0:{number}",
            "at": iso(self.started + number / 20),
            "input": "Completed",
            "words": f"Completed: lane {lane} (cpu:{lane}) finished batch {number - 1} after 0.{number % 900:03} ms",
            "reasons": reasons,
        }

    def lane(self, index, now):
        is_lost = index == self.lost_lane
        percent = 0 if is_lost else max(0.0, 45 + 45 * math.sin(now / 9 + index))
        state = "lost" if is_lost else {4: "held", 5: "drained"}.get(index, "working" if percent > 5 else "idle")
        return {
            "lane": index,
            "device": "cuda:0#1" if index == 3 else f"cpu:{index}",
            "state": state,
            "busy_percent": percent if state in ("working", "idle") else 0.0,
            "rows_per_s": percent * 812.5,
            "in_flight_rows": int(percent * 40),
            "waiting_rows": int(percent * 3),
            "groups": [] if is_lost else [f"{one % 4}:{one}" for one in range(index, 64, LANES)],
            "symbols": [] if is_lost else SYMBOLS[index::LANES],
        }

    def risk(self, now):
        newest = int(now - self.started) // 2 + 4
        made = []
        for number in range(newest, max(0, newest - 12), -1):
            name = HOSTILE[0] if number == 3 else f"desk-{number}"
            asked = {"request_id": name, "tenant": "desk <b>", "class": "INTERACTIVE", "seed": number}
            if number < newest - 1:
                received = int((self.started + number * 2) * 1e9)
                outcome = {"SimulationResult": {"price": 10.4506, "standard_error": 0.0101, "paths": 65536}}
                if number % 5 == 1:
                    values = [{"delta": 26.18, "error": "", "price": 359.6128}] * 8 + ["and 12 more"]
                    outcome = {"OptionResult": {"values": values}}
                if number % 5 == 0:
                    outcome = {"RiskError": {"code": "INVALID", "field": "spot", "message": "spot is not above 0"}}
                result = {**asked, "outcome": outcome, "received_ns": received, "finished_ns": received + 31_400_000}
                word = next(iter(outcome))
                made.append({"id": name, "outcome": word, "kind": word, "fields": result})
            made.append({"id": name, "outcome": "asked", "kind": "MonteCarlo", "fields": asked})
        return made

    def components(self):
        lanes = f"lane {self.lost_lane} (cpu:{self.lost_lane}) is lost or not open yet"
        lost = "broker lost 12 s ago: kafka:a:1 does not answer"
        parts = [
            ("engine", "ok", "partitions: 4"),
            ("log", "down" if self.broker_lost else "ok", lost if self.broker_lost else "it answers"),
            ("commits", "ok", "the last commit was 0.1 s ago"),
            (
                "lanes",
                "ok" if self.lost_lane is None else "degraded",
                f"lanes: {LANES}" if self.lost_lane is None else lanes,
            ),
            ("lag", "ok", "partition 1 is 812 records behind; the first has waited for 0.1 s"),
            ("symbols", "ok", "29 of at most 4096 symbols in the fullest partition"),
            ("hot_state", "ok", "0 records behind"),
        ]
        return [{"name": name, "level": level, "reason": reason} for name, level, reason in parts]

    def snapshot(self):
        now = time.time()
        age = now - self.started
        ticks = self.ticks(now)
        parts = self.components()
        worst = next((one for one in parts if one["level"] == "down"), None)
        worst = worst or next((one for one in parts if one["level"] != "ok"), None)
        seconds = [int(now) - ago for ago in range(min(120, int(age) + 90), 0, -1)]
        newest = 400 if self.decisions_stand else int(age * 20) + 400
        signals = [
            self.signal(
                number,
                SYMBOLS[number % len(SYMBOLS)],
                ALERTS[number % 5] if number % 6 == 0 else "BAR",
                "1s",
                101.25 + number % 7,
            )
            for number in range(int(now), int(now) - 40, -1)
        ]
        lag = {"records": int(812 + 50 * math.sin(now)), "seconds": 0.1 + 0.05 * math.sin(now)}
        return {
            "at": iso(now),
            "process": {"node": "mock-<i>node</i>", "group": "warptape", "ordinal": 0, "version": "0.1.0"},
            "state": {
                "level": worst["level"] if worst else "ok",
                "words": worst["reason"] if worst else "reading",
                "components": parts,
            },
            "totals": {
                "ticks": ticks,
                "signals": ticks // 17,
                "decisions": int(age * 500),
                "commits": int(age * 10),
                "late": 1015,
                "dead_letters": 3,
                "risk_requests": int(age) // 2,
                "symbols": len(SYMBOLS),
                "waiting_rows": int(900 + 800 * math.sin(now)),
                "in_flight_rows": 2400,
            },
            "history": {
                "ticks_per_s": [200_000 + 20_000 * math.sin(at / 5) for at in seconds],
                "signals_per_s": [12_000 + 2000 * math.sin(at / 3) for at in seconds],
                "commits_per_s": [10.0 + at % 3 for at in seconds],
                "lag_s": [None if at % 40 < 3 else 0.1 + 0.05 * math.sin(at) for at in seconds],
                "waiting_rows": [int(900 + 800 * math.sin(at)) for at in seconds],
            },
            "latency": {"p50_ms": 56.3, "p99_ms": 107.2, "p999_ms": 1810.4} if age > 1 else None,
            "lag": lag if self.lag_is_known else None,
            "partitions": [
                {
                    "partition": one,
                    "is_restoring": one == 3,
                    "is_paused": one == 2,
                    "watermark": None if one == 3 else iso(now - 1),
                    "symbols": 7,
                    "waiting_rows": 225,
                    "lag": lag if self.lag_is_known else None,
                }
                for one in range(4)
            ],
            "lanes": [self.lane(index, now) for index in range(LANES)],
            "devices": [
                {
                    "device": "cuda:0",
                    "healthy": True,
                    "reasons": [],
                    "temperature_celsius": 61,
                    "slowdown_celsius": 89,
                    "power_watts": 312.4,
                    "utilization_percent": 37,
                    "sm_clock_megahertz": 1980,
                    "memory_clock_megahertz": None,
                    "throttle_reasons": [],
                    "ecc_errors_uncorrected": 0,
                    "xid_errors": 0,
                    "lanes": [{"lane": 3, "ready": True, "in_service": True, "breaker": "closed"}],
                    "used_bytes": 9 << 30,
                    "free_bytes": 71 << 30,
                    "total_bytes": 80 << 30,
                }
            ],
            "signals": signals,
            "signals_by_kind": {"BAR": ticks // 18, **{kind: int(age) * 3 for kind in ALERTS}},
            "decisions": [self.entry(number) for number in range(newest, newest - 50, -1)],
            "risk": self.risk(now),
            "stores": {
                "log": "kafka:a:9092,b:9092",
                "lost": "broker lost 12 s ago: kafka:a:1 does not answer" if self.broker_lost else None,
                "disk_free_bytes": 31 << 30,
                "disk_size_bytes": 100 << 30,
                "hot_state": "0 records behind",
            },
            "verified": (
                {
                    "sequence": newest - 30,
                    "newest": newest,
                    "outputs": ticks // 17 - 90,
                    "difference": self.difference,
                    "share_percent": 10,
                }
                if self.has_verifier
                else None
            ),
            "symbols": [
                {"symbol": name, "bars": BARS[: 1 + place % 3], "signals": 50 - place}
                for place, name in enumerate(SYMBOLS)
            ],
            "symbols_left_out": self.left_out,
            "records_skipped": self.skipped,
        }

    def metrics(self):
        totals = self.snapshot()["totals"]
        names = {
            "warptape_ticks_total": "ticks",
            "warptape_signals_total": "signals",
            "warptape_late_ticks_total": "late",
        }
        return "".join(f"{name} {totals[key]}\n" for name, key in names.items())


def explanation(asked):
    waits = "\n".join(
        f"{row / 7:8.3f}  2026-11-28T19:08:00.{row:06}Z  lane  lane 0 (cpu:0) had 1 batch ahead" for row in range(90)
    )
    return f"BAR of {HOSTILE[0]}, asked as {asked}\n17.280 ms from publication to its seal\n\n wait_ms  until\n{waits}\n{HOSTILE[3]}\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Mock"

    def log_message(self, *_):
        pass

    def answer(self, status, media, body):
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.close_connection = True
        market, address = self.server.market, urlsplit(self.path)
        path, asked = address.path.lstrip("/") or "index.html", parse_qs(address.query)
        try:
            if (FILES / path).is_file():
                return self.answer(200, MEDIA.get((FILES / path).suffix, "text/plain"), (FILES / path).read_bytes())
            if market.token and self.headers.get("Authorization") != f"Bearer {market.token}":
                return self.answer(401, "text/plain", b"a token is needed\n")
            if path == "live":
                return self.stream(market)
            if path == "live.json":
                return self.answer(200, "application/json", json.dumps(market.snapshot()).encode())
            if path == "metrics":
                return self.answer(200, "text/plain", market.metrics().encode())
            if path == "candles.json":
                return self.candles(market, asked)
            if path == "why.txt":
                return self.why(asked)
            return self.answer(404, "text/plain", b"no such page\n")
        except (BrokenPipeError, ConnectionResetError):
            return None

    def candles(self, market, asked):
        symbol = asked["symbol"][0]
        if symbol not in SYMBOLS:
            return self.answer(404, "text/plain", b"no candles of this symbol\n")
        return self.answer(200, "application/json", json.dumps(market.candles(symbol, asked["bar"][0])).encode())

    def why(self, asked):
        what, of = next((key, values[0]) for key, values in asked.items())
        if of == "0:0":
            return self.answer(404, "text/plain", b"the journal has no entry 0:0 yet\n")
        self.server.whys += 1
        if self.server.whys % 2 == 1:
            return self.answer(429, "text/plain", b"another explanation is being made\n")
        return self.answer(200, "text/plain; charset=utf-8", explanation(f"{what} {of}").encode())

    def stream(self, market):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        until = time.time() + self.server.stream_s
        while time.time() < until and not self.server.is_closing:
            self.wfile.write(b": heartbeat\n\n")
            self.wfile.write(f"event: state\ndata: {json.dumps(market.snapshot())}\n\n".encode())
            self.wfile.flush()
            time.sleep(0.5)


class Mock(ThreadingHTTPServer):
    """The endpoint on a port; 0 takes a free one."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, port=0, stream_s=20):
        super().__init__(("127.0.0.1", port), Handler)
        self.market = Market()
        self.stream_s = stream_s
        self.is_closing = False
        self.whys = 0
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        self.is_closing = True
        self.shutdown()
        self.server_close()


if __name__ == "__main__":
    mock = Mock(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    print(mock.url, flush=True)
    threading.Event().wait()

"""Takes what is exported by OTLP over HTTP, by OpenTelemetry's own definitions, and prints each span and each value of a metric as a
line of JSON. The first line is the port. With a number as argument it refuses so many requests of each path first, for the moment."""

import collections
import gzip
import http.server
import json
import sys
import threading

from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


printing = threading.Lock()


def say(**line):
    with printing:
        print(json.dumps(line), flush=True)


def take_spans(message, authorization):
    for of_resource in message.resource_spans:
        resource = attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                say(
                    kind="span",
                    resource=resource,
                    scope=of_scope.scope.name,
                    authorization=authorization,
                    trace=span.trace_id.hex(),
                    span=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    name=span.name,
                    start_ns=span.start_time_unix_nano,
                    end_ns=span.end_time_unix_nano,
                    attributes=attributes(span.attributes),
                    error=span.status.message if span.status.code == span.status.STATUS_CODE_ERROR else None,
                )


def take_metrics(message, authorization):
    for of_resource in message.resource_metrics:
        resource = attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_metrics:
            for metric in of_scope.metrics:
                data = metric.WhichOneof("data")
                for point in getattr(metric, data).data_points:
                    say(
                        kind="metric",
                        resource=resource,
                        authorization=authorization,
                        name=metric.name,
                        unit=metric.unit,
                        is_monotonic=metric.sum.is_monotonic if data == "sum" else None,
                        value=getattr(point, point.WhichOneof("value")),
                        attributes=attributes(point.attributes),
                    )


to_refuse = int(sys.argv[1]) if len(sys.argv) > 1 else 0
refused = collections.Counter()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        services = {
            "/v1/traces": (traces.ExportTraceServiceRequest, traces.ExportTraceServiceResponse, take_spans),
            "/v1/metrics": (metrics.ExportMetricsServiceRequest, metrics.ExportMetricsServiceResponse, take_metrics),
        }
        request, response, take = services[self.path]
        assert self.headers["Content-Type"] == "application/x-protobuf", self.headers
        posted = self.rfile.read(int(self.headers["Content-Length"]))
        if refused[self.path] < to_refuse:
            refused[self.path] += 1
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.headers["Content-Encoding"] == "gzip":
            posted = gzip.decompress(posted)
        message = request.FromString(posted)
        take(message, self.headers["Authorization"])
        body = response().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
# Whoever started it closes its input when there is nothing more to come.
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
server.shutdown()

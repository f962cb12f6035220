"""Avro's single-object encoding: C3 01, the schema's CRC-64-AVRO fingerprint (little endian), the datum."""

import io
import json
from pathlib import Path

import fastavro

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas" / "avro"
MARKER = b"\xc3\x01"
HEADER_SIZE = 10


class Schema:
    """One of Warptape's published schemas, by the name of its file in schemas/avro."""

    def __init__(self, name: str):
        current = SCHEMAS / f"{name}.avsc"
        # A topic holds records of earlier versions too: alerts are written with version 1, bars with the current one.
        older = sorted((SCHEMAS / "old").glob(f"{name}_[0-9]*.avsc"))
        self.writers = {}
        for path in [*older, current]:
            text = json.loads(path.read_text(encoding="utf-8"))
            canonical = fastavro.schema.to_parsing_canonical_form(text)
            # The hex digits of the fingerprint's bytes, in the order in which they travel.
            self.header = MARKER + bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))
            self.name, self.parsed = text["name"], fastavro.parse_schema(text)
            self.writers[self.header] = self.parsed

    def encode(self, record: dict) -> bytes:
        """The record with its header. Fields that are left out get the defaults of the schema."""
        out = io.BytesIO()
        out.write(self.header)
        fastavro.schemaless_writer(out, self.parsed, record, strict_allow_default=True)
        return out.getvalue()

    def decode(self, payload: bytes) -> dict:
        """The record of a payload that any version of the schema wrote, with the fields of the current one."""
        writer = self.writers.get(payload[:HEADER_SIZE])
        if writer is None:
            raise ValueError(
                f"not a {self.name} record of a schema in {SCHEMAS}: it begins with "
                f"{payload[:HEADER_SIZE].hex()}, expected one of {', '.join(header.hex() for header in self.writers)}"
            )
        return fastavro.schemaless_reader(io.BytesIO(payload[HEADER_SIZE:]), writer, self.parsed)

# syntax=docker/dockerfile:1
# Warptape in a container: the binary and nothing else. librdkafka and its TLS are built from source and linked in.

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/source/target \
    cargo build --release --locked --package warptape-pipeline --bin warptape \
    && install -D target/release/warptape /out/warptape

FROM debian:bookworm-slim
# Certificate authorities, for brokers whose certificates are signed by a public one.
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --system --create-home --home-dir /var/lib/warptape warptape
COPY --from=build /out/warptape /usr/local/bin/warptape
USER warptape
WORKDIR /var/lib/warptape
# A drain: what was accepted is processed and committed.
STOPSIGNAL SIGTERM
ENTRYPOINT ["warptape"]
CMD ["run"]

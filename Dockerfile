# syntax=docker/dockerfile:1
# Warptape in a container: the binary, what it is linked to, and nothing else.
#
#   docker build --tag warptape:local .                       lanes on the processor
#   docker build --tag warptape:local-gpu --target gpu .      and on NVIDIA's GPUs; the driver comes from the host
#
# librdkafka and its TLS are built from source and linked in, so the binary needs glibc and libgcc_s at run time, and
# certificate authorities for brokers whose certificates are signed by a public one. Distroless' cc has these three and
# no shell or package manager, so there is less to ship and to patch than in Debian's slim image; it is made of the same
# Debian as the image that compiles. What runs in the container is `warptape`, also for the health check.

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
# Stripped: symbols and line tables are four fifths of what cargo builds. The folder is made here because distroless has no mkdir.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/source/target \
    cargo build --profile dist --features full --locked --package warptape-pipeline --bin warptape \
    && install -D --strip target/dist/warptape /out/warptape \
    && install -d /out/state

# NVRTC, which compiles the kernels when a GPU is opened. For drivers of CUDA 12 build with
# --build-arg NVRTC=nvidia-cuda-nvrtc-cu12 --build-arg NVRTC_VERSION=12.9.86.
FROM python:3.13-slim-bookworm AS nvrtc
ARG NVRTC=nvidia-cuda-nvrtc
ARG NVRTC_VERSION=13.5.37
RUN pip install --no-cache-dir --no-deps --target /packages "$NVRTC==$NVRTC_VERSION" \
    && install -d /nvrtc \
    && cp /packages/nvidia/*/lib/libnvrtc.so.* /packages/nvidia/*/lib/libnvrtc-builtins.so.* /nvrtc/

FROM gcr.io/distroless/cc-debian12:nonroot AS cpu
COPY --from=build /out/warptape /usr/local/bin/warptape
# 65532 is distroless' user nonroot, as a number so that Kubernetes can tell that it is not root (runAsNonRoot).
COPY --from=build --chown=65532:65532 /out/state /var/lib/warptape
USER 65532:65532
WORKDIR /var/lib/warptape
# /metrics, /livez, /readyz and their like. Whoever changes the port, or adds TLS, gives `warptape ready` another address.
# It listens on all addresses, so nothing but the probes is read without a token (endpoint.token), unless UNGUARDED=pages says otherwise.
ENV WARPTAPE__ENDPOINT__LISTEN=0.0.0.0:9464 \
    WARPTAPE__ENDPOINT__UNGUARDED=probes
EXPOSE 9464
# Kubernetes has probes of its own and takes no notice of this.
HEALTHCHECK --interval=5s --timeout=10s --start-period=30s --retries=12 CMD ["warptape", "ready"]
# A drain: what was accepted is processed and committed.
STOPSIGNAL SIGTERM
ENTRYPOINT ["warptape"]
CMD ["run"]

FROM cpu AS gpu
COPY --from=nvrtc /nvrtc /usr/local/lib/nvrtc
# What NVIDIA's container toolkit brings from the host: the driver (compute) and NVML (utility). Compiled kernels are kept in
# the state's folder, so that a volume there saves the next start from compiling them.
ENV LD_LIBRARY_PATH=/usr/local/lib/nvrtc \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    XDG_CACHE_HOME=/var/lib/warptape/cache

# The last stage is what is built where none is named.
FROM cpu

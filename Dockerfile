# One image for the service, the workers and the clock, from the wheels in dist:
#
#   make wheels && docker build --build-arg VERSION=0.2.0 --build-arg REVISION=$(git rev-parse HEAD) -t sayso .
#
# Build the image of your agents FROM sayso, as docs/production.md shows.
FROM python:3.11-slim-bookworm AS packages

# The same bytecode for the same wheels.
ARG SOURCE_DATE_EPOCH=1580601600
ENV SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH
WORKDIR /wheels
COPY requirements.lock dist/wheels.txt dist/*.whl ./
RUN python -m venv /opt/sayso && \
    /opt/sayso/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock && \
    /opt/sayso/bin/pip install --no-index --no-deps --require-hashes --requirement wheels.txt && \
    ln -s lib/python3.11/site-packages/sayso_server/tree /opt/sayso/programs

FROM python:3.11-slim-bookworm

ARG VERSION=0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Sayso" \
    org.opencontainers.image.description="The self-hosted approval desk for AI agents" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="$VERSION" \
    org.opencontainers.image.revision="$REVISION" \
    org.opencontainers.image.base.name="docker.io/library/python:3.11-slim-bookworm"

RUN useradd --uid 10001 --create-home sayso && install -d -o sayso -g sayso -m 700 /home/sayso/data /var/lib/sayso/archive
COPY --from=packages /opt/sayso /opt/sayso

ENV PATH=/opt/sayso/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SAYSO_HOME=/home/sayso/data \
    SAYSO_HOST=0.0.0.0
WORKDIR /opt/sayso/programs
USER 10001
EXPOSE 8321
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["python", "-m", "launch.checks", "service"]
CMD ["python", "-m", "launch.watched", "service"]

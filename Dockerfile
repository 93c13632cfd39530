# One image for the service, the workers and the clock; compose.yaml says which of them a container is.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SAYSO_HOME=/home/sayso/data \
    SAYSO_HOST=0.0.0.0

RUN useradd --uid 10001 --create-home sayso && install -d -o sayso -g sayso -m 700 /home/sayso/data
WORKDIR /app

COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes --requirement requirements.lock

COPY sayso sayso
COPY service service
COPY workers workers
COPY launch launch
COPY templates templates
COPY demo demo

# The service offers this wheel at /sdk/.
COPY pyproject.toml README.md LICENSE ./
RUN python -m hatchling build --target wheel --directory "$(python -c 'import sys; print(sys.prefix)')/sdk"

USER 10001
EXPOSE 8321
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "from launch.checks import is_healthy; raise SystemExit(not is_healthy('127.0.0.1', 8321))"]
CMD ["python", "-m", "launch.watched", "service"]

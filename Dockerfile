# The gateway as one image: packages in one stage, our code on top, nothing written outside /data.

FROM python:3.11-slim AS packages
COPY requirements.lock /tmp/
RUN python -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: -r /tmp/requirements.lock

FROM python:3.11-slim
RUN groupadd --gid 10001 yumegate \
 && useradd --uid 10001 --gid yumegate --home-dir /data --no-create-home --shell /usr/sbin/nologin yumegate \
 && install -d -o yumegate -g yumegate -m 700 /data
COPY --from=packages /opt/venv /opt/venv
COPY gateway /app/gateway
COPY channels /app/channels
COPY agent /app/agent
COPY memory /app/memory
COPY config.json.example /app/
RUN /opt/venv/bin/python -m compileall -q /app

ENV PATH=/opt/venv/bin:$PATH PYTHONPATH=/app HOME=/data PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER yumegate
WORKDIR /data
VOLUME /data
EXPOSE 8420 8421
STOPSIGNAL SIGTERM

# The process alone; /readyz says more. YUMEGATE_PORT is only for this check: set it when channels.web.port is not 8420.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ.get('YUMEGATE_PORT', 8420)}/healthz\", timeout=4)"]

# The first start writes /data/config.json from the example; the workspace is /data/yumegate.
CMD ["sh", "-c", "umask 077; [ -e config.json ] || cp /app/config.json.example config.json; exec python -m gateway run --config config.json"]

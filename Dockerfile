# The run-time lock goes into an environment of its own, in which nothing else can be installed; the tests stay out.
FROM python:3.13-slim AS environment
COPY requirements.lock .
RUN python -m venv /environment \
 && /environment/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.lock
RUN /environment/bin/pip uninstall --yes --quiet pip
COPY extender /app/extender
# Nothing is written when it runs: what Python would compile then is compiled here.
RUN /environment/bin/python -m compileall -q --invalidation-mode unchecked-hash /app/extender

FROM python:3.13-slim
COPY --from=environment /environment /environment
COPY --from=environment /app /app
ENV PYTHONDONTWRITEBYTECODE=1 HOME=/nonexistent
WORKDIR /app
# A number, so that Kubernetes can verify runAsNonRoot.
USER 65532:65532
ENTRYPOINT ["/environment/bin/python", "-m", "extender"]

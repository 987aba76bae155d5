# The executable and a C library are all it needs; data lives in the volume.
#   npm run build && podman build -f server/service/container.dockerfile -t sightglass .
FROM debian:bookworm-slim
COPY --chmod=0755 dist/sightglass /usr/local/bin/sightglass
RUN useradd --system --uid 7400 --no-create-home sightglass && install -d -o sightglass -m 0700 /data
USER sightglass
VOLUME /data
ENV SIGHTGLASS_DATA_DIR=/data SIGHTGLASS_LISTEN=0.0.0.0:7400
EXPOSE 7400
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["sightglass", "ready"]
ENTRYPOINT ["sightglass"]
CMD ["serve"]

# Debian's npm only fetches: the program runs on the Node that comes with its packages (docs/decisions/003-node-through-npm.md).
FROM debian:trixie-slim AS packages
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates npm \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY package.json package-lock.json ./
COPY dashboard/package.json ./dashboard/
RUN npm ci --omit=dev
# 20 MB that only exporting traces needs (docs/tracing.md), in the versions of the tests.
ARG TRACES=no
# hadolint ignore=SC2046
RUN if [ "$TRACES" = yes ]; then \
    npm install --no-save --save-prod --omit=dev $(node -p "Object.entries(require('./package.json').devDependencies) \
      .flatMap(([name, version]) => (name.startsWith('@opentelemetry/') ? name + '@' + version : [])).join(' ')"); \
  fi

# Needs what the program itself does without: the compiler of the pages and its libraries.
FROM packages AS dashboard
RUN npm ci
COPY tsconfig.json ./
COPY tools/build-dashboard.ts ./tools/
COPY dashboard ./dashboard
RUN npm run build && test -f dashboard/dist/index.html

FROM debian:trixie-slim
# Certificates of webhook receivers and of mail servers are verified against these.
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin postrider \
  && install --directory --mode=0700 --owner=postrider --group=postrider /data
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY bin ./bin
COPY src ./src
COPY packages/client ./packages/client
COPY docs ./docs
COPY --from=dashboard /app/dashboard/dist ./dashboard/dist
RUN printf '#!/bin/sh\nexec /app/node_modules/.bin/node /app/bin/postrider.js "$@"\n' > /usr/local/bin/postrider \
  && chmod 755 /usr/local/bin/postrider
ENV POSTRIDER_DATA=/data HOST=0.0.0.0 NODE_ENV=production
USER postrider
VOLUME /data
EXPOSE 3025 2525 2587 2465
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=4 \
  CMD ["/app/node_modules/.bin/node", "-e", "fetch('http://127.0.0.1:3025/healthz').then((a) => process.exit(a.ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/app/node_modules/.bin/node", "/app/bin/postrider.js"]
CMD ["serve"]

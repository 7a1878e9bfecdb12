FROM node:24.20.0-bookworm-slim@sha256:ba849c60be29959425b8734d57b8b4b7d56f98edd9504c9af091d5281095a71e AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --include=dev
COPY tsconfig.json tsconfig.page.json ./
COPY scripts/build.mjs scripts/
COPY scripts/lib scripts/lib
COPY config config
COPY services services
COPY gateway gateway
COPY tools tools
COPY webhooks webhooks
# What runs needs no development tools, scripts, types or source maps.
RUN node scripts/build.mjs \
  && npm prune --omit=dev \
  && rm -r dist/scripts \
  && find dist node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete \
  && install -d -m 0700 /data

# Node and what it needs, without a shell, npm or a package manager.
FROM gcr.io/distroless/nodejs24-debian12:nonroot@sha256:14d42e2511532589a7c7e01a753667a74fcc96266e137e8125006b87b0c32d0a
# Inside a container the data port must be reachable from outside it; the admin port stays on its loopback.
ENV NODE_ENV=production LISTEN_HOST=0.0.0.0 DATA_DIR=/data
WORKDIR /app
COPY --from=build --chown=65532:65532 /data /data
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
COPY config config
# By number, so that Kubernetes can see that it is not root.
USER 65532:65532
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["/nodejs/bin/node", "dist/gateway/cli.js", "health"]
ENTRYPOINT ["/nodejs/bin/node", "dist/gateway/cli.js"]
CMD ["serve", "--config", "config/gateway.yaml"]

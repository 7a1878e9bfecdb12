# Build: every dependency, the compiler, the sources.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --include=dev
COPY tsconfig.json ./
COPY scripts scripts
COPY config config
COPY services services
COPY gateway gateway
COPY tools tools
RUN node scripts/build.mjs

# What runs needs no development tools.
FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev && npm cache clean --force

FROM node:24-slim
# Inside a container the data port must be reachable from outside it; the admin port stays on its loopback.
ENV NODE_ENV=production LISTEN_HOST=0.0.0.0 DATA_DIR=/data
WORKDIR /app
RUN install -d -o node -g node -m 0700 /data
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
COPY config config
USER node
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["node", "dist/gateway/cli.js", "health"]
ENTRYPOINT ["node", "dist/gateway/cli.js"]
CMD ["serve", "--config", "config/gateway.yaml"]

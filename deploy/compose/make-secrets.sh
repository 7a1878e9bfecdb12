#!/bin/sh
# Writes the secrets of compose.yaml and services.yaml that are missing into secrets/, and leaves those that are there alone.
# Each container reads them as a user of its own, so the files are open to all; the folder is not.
set -eu
cd "$(dirname "$0")"
umask 022
mkdir -p secrets
chmod 700 secrets
make() {
  [ -s "secrets/$1" ] || openssl rand "-$2" "$3" >"secrets/$1"
}
make admin_key hex 24
make encryption_key base64 32
make gateway_secret hex 24
make grafana_password hex 12

#!/bin/sh
# Makes the account key, once. DPKG_ROOT is set when the package is installed below another root.
set -e
key="${DPKG_ROOT:-}/etc/orrery/key"
if [ ! -s "$key" ]; then
	(umask 077; head -c 64 /dev/urandom | base64 | tr -d '\n' > "$key")
fi
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi

#!/bin/sh
# $1 is "remove" (deb) or 0 (rpm) when the package isn't replaced by a newer one.
set -e
if [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
		systemctl disable --now orrery.service || true
	fi
fi

#!/bin/bash
# fixture.sh up|down: before the first test on a host, and after the last one.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
if ! why=$("$here/can.sh"); then
  echo "NOT RUN: $why"
  if [ "${CI:-}" = true ]; then echo "CI=true: that is a failure"; exit 1; fi
  exit 77
fi
case $1 in
  up) "$here/testhost.sh" image ;;
  down) "$here/testhost.sh" down --all ;;
esac

#!/bin/bash
# in_lab.sh HOSTS -- CMD...: runs CMD beside the test hosts HOSTS (comma-separated), which are up and unharmed when it begins, and
# heals them afterwards. Ends with 77 where the machine cannot run test hosts; under CI=true that is a failure.
#
# CMD finds: TESTHOST (the path of testhost.sh), TESTHOST_ID, TESTHOST_HOSTS ("a b"), TESTHOST_SSH_CONFIG, and what ctest's wrapper
# exports: STANDIN_SERVER, CAMPAIGN_BIN, CAMPAIGN_SOURCE.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
hosts=${1//,/ }; shift; [ "${1:-}" != -- ] || shift

for word in "$@"; do
  # The build asks a test program for its list of tests: that needs no host.
  if [ "$word" = --gtest_list_tests ]; then exec "$@"; fi
done

if ! why=$("$here/can.sh"); then
  echo "NOT RUN: $why"
  if [ "${CI:-}" = true ]; then echo "CI=true: that is a failure"; exit 1; fi
  exit 77
fi

export TESTHOST=$here/testhost.sh TESTHOST_HOSTS=$hosts TESTHOST_ID=${TESTHOST_ID:-}
export TESTHOST_SSH_CONFIG=${TESTHOST_RUN:-/run/testhost$TESTHOST_ID}/ssh_config
heal() { local host; for host in $hosts; do "$TESTHOST" heal "$host" || true; done; }

# shellcheck disable=SC2086  # names, separated by blanks
"$TESTHOST" up $hosts
heal
trap heal EXIT
"$TESTHOST" lab -- "$@"

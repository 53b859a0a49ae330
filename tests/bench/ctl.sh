#!/bin/bash
# ctl.sh [ROUNDS]: `campaignctl status`, from process start to exit, while a campaign runs, against `systemctl is-active` on a test host,
# in turn in the same run. Ends with 1 when it is the slower one.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
hosts=$here/../hosts
bin=${CAMPAIGN_BIN:-$(readlink -f "$here/../../build/release/bin")}
rounds=${1:-200}
export TESTHOST_ID=${TESTHOST_ID:-bench}
testhost=$hosts/testhost.sh

if ! why=$("$hosts/can.sh"); then echo "NOT RUN: $why"; exit 77; fi
for program in campaignd campaignctl campaign-agent spawn-timer standin-server; do
  [ -x "$bin/$program" ] || { echo "bench: no $bin/$program: ./dev build" >&2; exit 1; }
done

state=$(mktemp -d /tmp/campaign-bench-XXXXXX)
daemon=''
finish() {
  if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; fi
  "$testhost" down --all
  rm -rf "$state"
}
trap finish EXIT

"$testhost" up gpu1
"$hosts/provision.sh" gpu1 --server "$bin/standin-server" --load 1
"$testhost" exec gpu1 -- sh -c 'cat >/usr/local/bin/spawn-timer && chmod 755 /usr/local/bin/spawn-timer' <"$bin/spawn-timer"

socket=$state/api.sock
"$testhost" lab -- "$bin/campaignd" --state-dir "$state" --socket "$socket" --ssh-config "/run/testhost$TESTHOST_ID/ssh_config" \
  --agent "$bin/campaign-agent" --log-level warn </dev/null >"$state/daemon.log" 2>&1 &
daemon=$!
ctl() { "$bin/campaignctl" --socket "$socket" "$@"; }
for _ in {1..100}; do [ ! -S "$socket" ] || break; sleep 0.1; done
[ -S "$socket" ] || { echo "bench: campaignd did not start:" >&2; cat "$state/daemon.log" >&2; exit 1; }

# Long enough to be running still when the last round is over.
cat >"$state/bench.yaml" <<'PLAN'
campaign: bench
hosts:
  gpu1: {ssh: gpu1}
services:
  kimi: {host: gpu1, unit: vllm-standin.service, url: "http://127.0.0.1:8000"}
phases:
  - name: how-fast
    measure: throughput
    load: {concurrency: [1], input_tokens: 64, output_tokens: 64, duration: 10m}
PLAN
ctl submit "$state/bench.yaml"
for _ in {1..50}; do
  if ctl status bench | grep -q how-fast; then break; fi
  sleep 0.2
done
ctl status || true

"$here/interleave.py" "$rounds" "$bin/spawn-timer" "$bin/campaignctl" --socket "$socket" status -- \
  "$testhost" exec gpu1 -- /usr/local/bin/spawn-timer systemctl is-active vllm-standin.service

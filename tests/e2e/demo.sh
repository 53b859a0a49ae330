#!/bin/bash
# The reference campaign on a test host, from outside: preflight, a probe that starts nothing, the pivot, the approval, a model load of
# a minute and more, the profile, traces of two ranks, production restored and verified, status and report. `./dev demo` builds first.
# Where the machine refuses namespaces the same campaign runs on this machine with the local transport and a plain process.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../..")
bin=${CAMPAIGN_BIN:-$root/build/release/bin}
load=${DEMO_LOAD_S:-65}
export NO_COLOR=1 CAMPAIGN_BIN=$bin STANDIN_SERVER=$bin/standin-server TESTHOST_ID=${TESTHOST_ID:-demo}
home=$root/build/demo
testhost=$root/tests/hosts/testhost.sh
say() { printf '\n== %s\n' "$*"; }

if [ "${1:-}" != --inside ]; then
  rm -rf "$home"; mkdir -p "$home"
  if why=$("$root/tests/hosts/can.sh"); then
    say "boot a test host with its own systemd and sshd (the first time its image is made)"
    trap '"$testhost" down --all >/dev/null 2>&1 || true' EXIT
    "$testhost" up gpu1
    say "install the stand-in server as vllm-standin.service; it loads for $load s"
    "$root/tests/hosts/provision.sh" gpu1 --load "$load" --env STANDIN_TOKEN_MS=12.4
    cat >"$home/plan.yaml" <<PLAN
campaign: demo
hosts:
  gpu1: {ssh: gpu1}
services:
  kimi: {host: gpu1, unit: vllm-standin.service, url: "http://127.0.0.1:8000", load_time: ${load}s}
policy:
  restart: ask
  max_downtime: 10m
restore: {probe: within 50%}
phases:
  - name: warm-up
    measure: warm-up
  - name: how-fast
    measure: throughput
    load: {concurrency: [1, 4, 16, 32], input_tokens: 256, output_tokens: 32, requests: 32}
  - name: where-does-decode-go
    measure: decode-step
    load: {input_tokens: 64, output_tokens: 32, requests: 4}
    capture: {warmup: 8, steps: 40, output_tokens: 64}
PLAN
    "$testhost" lab -- "$here/demo.sh" --inside "/run/testhost$TESTHOST_ID/ssh_config"
    say "what the stand-in itself recorded: starts and profiles"
    "$testhost" exec gpu1 -- grep -E '"event":"(start|start_profile|stop_profile)"' /var/lib/standin/truth.jsonl | cut -c1-160
  else
    say "$why: the same campaign on this machine, with the local transport and a plain process"
    trap '"$here/local_service.sh" stop "$home/local"' EXIT
    mkdir -p "$home/local"
    CAMPAIGN_NAME=demo "$here/local_service.sh" start "$home/local" "$load"
    cp "$home/local/plan.yaml" "$home/plan.yaml"
    "$here/demo.sh" --inside ""
  fi
  say "the report lies in $home/report.md, the journal and the artifacts in $home/state"
  exit 0
fi

config=${2:-}
export CAMPAIGND_SOCKET=$home/api.sock
ctl=$bin/campaignctl

say "start campaignd"
"$bin/campaignd" --state-dir "$home/state" --socket "$CAMPAIGND_SOCKET" ${config:+--ssh-config "$config"} >"$home/campaignd.log" 2>&1 &
daemon=$!
trap 'kill $daemon 2>/dev/null || true; wait $daemon 2>/dev/null || true' EXIT
for _ in $(seq 100); do if [ -S "$CAMPAIGND_SOCKET" ]; then break; fi; sleep 0.1; done

say "campaignctl plan check"
"$ctl" plan check "$home/plan.yaml"
say "campaignctl plan explain: what would run, and what it would cost"
"$ctl" plan explain "$home/plan.yaml"
say "campaignctl submit"
"$ctl" submit "$home/plan.yaml"
say "until a person is needed: the restart that a profile needs must be approved"
"$ctl" wait demo --for decision --timeout 300s || true
"$ctl" status demo
label=$("$ctl" status demo --json | python3 -c 'import json, sys; print(next(n["subject"] for n in json.load(sys.stdin)["needs"]))')
say "campaignctl status demo --decision $label"
"$ctl" status demo --decision "$label"
say "campaignctl approve demo $label torch-profile"
"$ctl" approve demo "$label" torch-profile
say "the load, as status sees it half-way"
sleep "$((${load%.*} / 2 + 12))"
"$ctl" status demo
say "campaignctl wait demo"
"$ctl" wait demo --timeout 900s
say "campaignctl status"
"$ctl" status
"$ctl" status demo
"$ctl" report demo -o "$home/report.md"
"$ctl" artifacts demo
say "the first lines of the report"
sed -n 1,40p "$home/report.md"

#!/bin/bash
# local_service.sh start|stop HOME [LOAD_S]: the stand-in as a plain process on this machine, and the plan of a campaign on it.
# Needs no root and no namespaces. HOME/plan.yaml, HOME/truth.jsonl (what really happened), HOME/server.log.
set -euo pipefail
verb=$1 home=$(readlink -f "$2") load=${3:-5}
bin=${CAMPAIGN_BIN:?the folder of the built programs}
work=$home/work state=$home/work/process

case $verb in
  start)
    mkdir -p "$home/bin" "$state"
    cp "$bin/standin-server" "$home/bin/vllm"
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    cat >"$home/plan.yaml" <<PLAN
campaign: ${CAMPAIGN_NAME:-local-k25}
hosts:
  here: {local: true, work_dir: $work}
services:
  kimi:
    host: here
    url: "http://127.0.0.1:$port"
    load_time: ${load}s
    process:
      command: [$home/bin/vllm, serve, moonshotai/Kimi-K2.5, --host, 127.0.0.1, --port, "$port", --tensor-parallel-size, "2", --served-model-name, kimi]
      environment: {NO_COLOR: "1", STANDIN_LOAD_S: "$load", STANDIN_TRUTH: $home/truth.jsonl}
      directory: /
      log: $home/server.log
policy:
  restart: ask
  max_downtime: 30m
restore: {probe: within 60%}
phases:
  - name: warm-up
    measure: warm-up
  - name: how-fast
    measure: throughput
    load: {concurrency: [1, 4, 16], input_tokens: 64, output_tokens: 16, requests: 8}
  - name: where-does-decode-go
    measure: decode-step
    load: {input_tokens: 32, output_tokens: 16, requests: 4}
    capture: {warmup: 4, steps: 20, output_tokens: 40, input_tokens: 32}
PLAN
    # As whoever runs this machine would have started it: the same command and environment that the plan names.
    env -i PATH="$PATH" HOME="${HOME:-/}" LANG=C.UTF-8 NO_COLOR=1 STANDIN_LOAD_S="$load" STANDIN_TRUTH="$home/truth.jsonl" \
      setsid "$home/bin/vllm" serve moonshotai/Kimi-K2.5 --host 127.0.0.1 --port "$port" --tensor-parallel-size 2 --served-model-name kimi \
      >>"$home/server.log" 2>&1 </dev/null &
    for _ in $(seq 600); do
      if curl -sf -o /dev/null "http://127.0.0.1:$port/health"; then exit 0; fi
      sleep 0.1
    done
    echo "the stand-in did not become healthy: $home/server.log" >&2
    exit 1
    ;;
  stop)
    # Only what runs our own copy of the stand-in.
    for exe in /proc/[0-9]*/exe; do
      if [ "$(readlink "$exe" 2>/dev/null)" = "$home/bin/vllm" ]; then pid=${exe#/proc/}; kill "${pid%/exe}" 2>/dev/null || true; fi
    done
    rm -rf "$home"
    ;;
  *) echo "local_service.sh start|stop HOME" >&2; exit 2 ;;
esac

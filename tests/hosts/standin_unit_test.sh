#!/bin/bash
# The stand-in as a unit of a host's own systemd: provisioned, healthy, argv and user as a real vLLM's, restarted with a drop-in that
# turns the profiler on, killed and brought back by systemd, and its log in the journal with progress.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
host=${TESTHOST_HOSTS%% *}
unit=vllm-standin.service
on_host() { "$TESTHOST" exec "$host" -- "$@"; }
show() { on_host systemctl show -p "$1" --value $unit; }
fail() { echo "FAILED: $*"; on_host journalctl -u $unit -n 30 --no-pager -a; exit 1; }
code() { on_host curl -s -o /dev/null -w '%{http_code}' "$@" || true; }

"$here/provision.sh" "$host" --load 1 --nsys --env STANDIN_STOP_S=0.5
[ "$(code http://127.0.0.1:8000/health)" = 200 ] || fail "health"
[ "$(code http://127.0.0.1:8000/start_profile)" = 404 ] || fail "the profiler route is there without the flag"
argv=$(on_host sh -c 'tr "\0" " " <"/proc/$1/cmdline"' sh "$(show MainPID)")
[[ $argv == "/opt/vllm/bin/vllm serve moonshotai/Kimi-K2.5 "* ]] || fail "argv: $argv"
[ "$(on_host stat -c %U "/proc/$(show MainPID)")" = vllm ] || fail "user"

before=$(show InvocationID)
on_host sh -c 'mkdir -p /run/systemd/system/$1.d && printf "[Service]\nExecStart=\nExecStart=%s\n" "$2" >/run/systemd/system/$1.d/p.conf' sh $unit \
  "${argv% } --profiler-config.profiler=torch --profiler-config.torch_profiler_dir=/var/lib/standin/traces"
on_host systemctl daemon-reload
on_host systemctl restart $unit
[ "$(code http://127.0.0.1:8000/health)" = 000 ] || fail "a connection was accepted while the model loads"
for _ in {1..100}; do [ "$(code http://127.0.0.1:8000/health)" != 200 ] || break; sleep 0.1; done
[ "$(show InvocationID)" != "$before" ] || fail "same invocation"
[ "$(code http://127.0.0.1:8000/start_profile)" = 405 ] || fail "GET of the profiler route"
[ "$(code -X POST http://127.0.0.1:8000/start_profile)" = 200 ] || fail "start"
[ "$(code -H 'Content-Type: application/json' -d '{"prompt":"a","max_tokens":8}' http://127.0.0.1:8000/v1/completions)" = 200 ] || fail "tokens"
[ "$(code -X POST http://127.0.0.1:8000/stop_profile)" = 200 ] || fail "stop"
[ "$(on_host sh -c 'ls /var/lib/standin/traces/*rank[01].*.pt.trace.json.gz | wc -l')" = 2 ] || fail "traces"
on_host sh -c 'gzip -t /var/lib/standin/traces/*.gz' || fail "gzip"
[ "$(on_host journalctl -u $unit -o json --all --no-pager | grep -c 'Application startup complete')" -ge 2 ] || fail "the journal has no ready line"
[ "$(on_host grep -c '"event":"start_profile".*"phase":"done"' /var/lib/standin/truth.jsonl)" = 1 ] || fail "truth"

on_host systemctl kill -s KILL $unit
for _ in {1..100}; do [ "$(show NRestarts)" = 0 ] || break; sleep 0.1; done
[ "$(show NRestarts)" = 1 ] || fail "systemd did not bring it back"
[ "$(show Result)" = success ] || fail "result $(show Result)"
[ "$(on_host nsys --version | cut -d' ' -f1-3)" = "NVIDIA Nsight Systems" ] || fail "nsys"
on_host sh -ec 'cd /tmp; nsys launch --session-new=s -t cuda sleep 60 & sleep 0.3; nsys start --session=s -o r; sleep 0.1; nsys stop --session=s
  nsys export --type sqlite -o r.sqlite r.nsys-rep; kill $!' >/dev/null || fail "nsys capture"
kernels=$(on_host python3 -c 'import sqlite3; print(sqlite3.connect("/tmp/r.sqlite").execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0])')
[ "$kernels" -gt 0 ] || fail "the export holds no kernel"
on_host rm -rf /tmp/r.sqlite /tmp/r.nsys-rep /tmp/nsys-standin
on_host systemctl stop $unit
[ "$(show ExecMainStatus)" = 0 ] || fail "SIGTERM did not end with 0"
echo "ok"

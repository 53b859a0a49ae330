#!/bin/bash
# provision.sh HOST [options]: installs the stand-in on a test host as vllm-standin.service, enabled and started, and waits for health.
#
#   --server PATH     the stand-in (default $STANDIN_SERVER, else the newest build/*/bin/standin-server)
#   --unit NAME       default vllm-standin.service
#   --model NAME      default moonshotai/Kimi-K2.5;  --served NAME  default kimi
#   --port N          default 8000, on 127.0.0.1
#   --tp N            ranks, default 2
#   --load S          seconds of a load, default 3
#   --arg WORD        one more word of the command line (repeat)
#   --env K=V         one more Environment= (repeat): STANDIN_TOKEN_MS=12.4
#   --faults JSON     written to /etc/standin/faults.json before the start (see tests/standin/options.hpp)
#   --nsys            also the stand-in of nsys, as /usr/local/bin/nsys
#   --no-wait         do not wait for health;  --no-start  do not start
#
# What an earlier call left on the host for that unit (drop-ins, record, traces) is removed. On the host: /opt/vllm/bin/vllm, user vllm, /var/lib/standin/truth.jsonl (what really happened), /etc/standin/faults.json
# (read at each start).
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
testhost=${TESTHOST:-$here/testhost.sh}
host=${1:?HOST}; shift
unit=vllm-standin.service model=moonshotai/Kimi-K2.5 served=kimi port=8000 ranks=2 load=3 faults='' nsys='' wait=1 start=1
server=${STANDIN_SERVER:-} words=() variables=()
while [ $# -gt 0 ]; do
  case $1 in
    --server) server=$2; shift 2 ;;   --unit) unit=$2; shift 2 ;;     --model) model=$2; shift 2 ;;
    --served) served=$2; shift 2 ;;   --port) port=$2; shift 2 ;;     --tp) ranks=$2; shift 2 ;;
    --load) load=$2; shift 2 ;;       --arg) words+=("$2"); shift 2 ;; --env) variables+=("$2"); shift 2 ;;
    --faults) faults=$2; shift 2 ;;   --nsys) nsys=1; shift ;;        --no-wait) wait=''; shift ;;
    --no-start) start=''; wait=''; shift ;;
    *) echo "provision: unknown option $1" >&2; exit 2 ;;
  esac
done
if [ -z "$server" ]; then
  # shellcheck disable=SC2012  # our own names
  server=$(ls -t "$here"/../../build/*/bin/standin-server 2>/dev/null | head -1)
fi
[ -x "$server" ] || { echo "provision: no standin-server: ./dev build" >&2; exit 1; }

on_host() { "$testhost" exec "$host" -- "$@"; }
put() { on_host sh -c 'umask 022; mkdir -p "${1%/*}"; cat >"$1.new" && chmod "$2" "$1.new" && mv "$1.new" "$1"' sh "$1" "$2"; }

# From whatever an earlier test left: no old process, drop-in, record or trace.
on_host sh -c 'systemctl stop "$1" 2>/dev/null; systemctl reset-failed "$1" 2>/dev/null
  rm -rf "/run/systemd/system/$1.d" "/etc/systemd/system/$1.d" /var/lib/standin' sh "$unit"
put /opt/vllm/bin/standin-server 755 <"$server"
on_host sh -c 'ln -sf standin-server /opt/vllm/bin/vllm
  id vllm >/dev/null 2>&1 || useradd --system --home-dir /var/lib/standin --shell /usr/sbin/nologin vllm
  install -d -o vllm -g vllm /var/lib/standin; install -d /etc/standin'
if [ -n "$nsys" ]; then put /usr/local/bin/nsys 755 <"$here/../standin/nsys"; fi
printf '%s\n' "${faults:-{\}}" | put /etc/standin/faults.json 644

{
  printf '%s\n' '[Unit]' 'Description=vLLM inference server' 'After=network.target' '' '[Service]' 'User=vllm' 'Group=vllm' \
    "ExecStart=/opt/vllm/bin/vllm serve $model --host 127.0.0.1 --port $port --tensor-parallel-size $ranks --served-model-name $served${words[*]:+ ${words[*]}}" \
    'Environment=NO_COLOR=1 PYTHONUNBUFFERED=1' "Environment=STANDIN_LOAD_S=$load" \
    'Environment=STANDIN_TRUTH=/var/lib/standin/truth.jsonl STANDIN_FAULTS=/etc/standin/faults.json'
  if [ ${#variables[@]} -gt 0 ]; then printf 'Environment="%s"\n' "${variables[@]}"; fi
  printf '%s\n' 'Restart=on-failure' '' '[Install]' 'WantedBy=multi-user.target'
} | put "/etc/systemd/system/$unit" 644

on_host systemctl daemon-reload
on_host systemctl --quiet enable "$unit"
if [ -z "$start" ]; then exit 0; fi
on_host systemctl restart "$unit"
if [ -z "$wait" ]; then exit 0; fi
end=$((SECONDS + ${load%.*} + 60))
until on_host curl -sf -o /dev/null "http://127.0.0.1:$port/health"; do
  if [ $SECONDS -ge $end ] || ! on_host systemctl --quiet is-active "$unit"; then
    echo "provision: $unit on $host is not healthy:" >&2
    on_host journalctl -u "$unit" -n 20 --no-pager -a >&2
    exit 1
  fi
  sleep 0.1
done

#pragma once
// The constant scripts that run on a host. Operands come as positional parameters, never by substitution.

#include <string_view>

namespace campaign::systemd::scripts {

/// $1 unit, $2 properties.
inline constexpr std::string_view look = R"sh(export LC_ALL=C
cat /proc/sys/kernel/random/boot_id || exit 70
exec systemctl show --no-pager -p "$2" -- "$1"
)sh";

/// $1 unit, $2 properties, $3 object path, $4 container runtime or empty, $5 container name.
/// Lines "KEY ...", bytes in base64. The values of the environment are hashed here and do not leave the host, nor are they
/// ever an argument of a process.
inline constexpr std::string_view baseline = R"sh(export LC_ALL=C
b64() { base64 | tr -d '\n'; echo; }
printf 'boot '; cat /proc/sys/kernel/random/boot_id || exit 70
printf 'btime '; sed -n 's/^btime //p' /proc/stat
printf 'ticks '; getconf CLK_TCK 2>/dev/null || echo 100
shown=$(systemctl show --no-pager -p "$2" -- "$1") || exit 71
printf 'show '; printf '%s' "$shown" | b64
if exec_now=$(busctl --json=short get-property org.freedesktop.systemd1 "$3" org.freedesktop.systemd1.Service ExecStartEx 2>&1)
then printf 'exec '; else printf 'noexec '; fi
printf '%s' "$exec_now" | b64
group=$(printf '%s\n' "$shown" | sed -n 's/^ControlGroup=//p')
main=$(printf '%s\n' "$shown" | sed -n 's/^MainPID=//p')
pids_below() {
    for root in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
        [ -d "$root$1" ] && find "$root$1" -name cgroup.procs -exec cat {} + 2>/dev/null
    done
}
pids=
[ -n "$group" ] && [ "$group" != / ] && pids=$(pids_below "$group")
if [ -n "$group" ] && [ "$group" != / ] && [ -z "$pids" ]; then
    for one in /proc/[0-9]*; do
        grep -q -e "$group\$" -e "$group/" "$one/cgroup" 2>/dev/null && pids="$pids ${one#/proc/}"
    done
fi
if [ -n "$4" ]; then
    inner=$("$4" inspect --format '{{.State.Pid}}' "$5" 2>/dev/null)
    case $inner in
        ''|0|*[!0-9]*) ;;
        *) inside=$(sed -n 's/^0:://p' "/proc/$inner/cgroup" 2>/dev/null)
           pids="$pids $inner"
           [ -n "$inside" ] && [ "$inside" != / ] && pids="$pids $(pids_below "$inside")" ;;
    esac
fi
count=0
for pid in $(printf '%s\n' $main $pids | sort -nu); do
    [ "$pid" -gt 0 ] 2>/dev/null || continue
    count=$((count + 1)); [ "$count" -gt 512 ] && break
    stat=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
    stat=${stat##*) }
    parent=$(printf '%s' "$stat" | cut -d' ' -f2)
    start=$(printf '%s' "$stat" | cut -d' ' -f20)
    printf 'proc %s %s %s ' "$pid" "$parent" "$start"; head -c 262144 "/proc/$pid/cmdline" 2>/dev/null | b64
    words=$(head -c 65536 "/proc/$pid/cmdline" 2>/dev/null | tr '\0' ' ')
    case $words in
        VLLM::*|sglang::*) continue ;;
        *vllm*|*sglang*|*llama*|*trtllm*) ;;
        *) [ "$pid" = "$main" ] || continue ;;
    esac
    tr '\0\n' '\n\001' 2>/dev/null <"/proc/$pid/environ" | while IFS= read -r entry; do
        case $entry in *=*) ;; *) continue ;; esac
        hash=$(printf '%s' "${entry#*=}" | tr '\001' '\n' | sha256sum)
        printf 'env %s %s %s\n' "$pid" "${hash%% *}" "${entry%%=*}"
    done
done
for key in FragmentPath DropInPaths EnvironmentFiles; do
    printf '%s\n' "$shown" | sed -n "s/^$key=//p" | sed 's/ (ignore_errors=[a-z]*)$//' | tr ' ' '\n' | while IFS= read -r file; do
        [ -n "$file" ] && stat -L -c 'file %Y %n' -- "$file" 2>/dev/null
    done
done
echo 'end .'
)sh";

/// $1 unit, $2 object path. What systemd has loaded after a reload.
inline constexpr std::string_view reload = R"sh(export LC_ALL=C
systemctl daemon-reload || exit 72
printf 'boot '; cat /proc/sys/kernel/random/boot_id
printf 'show '; systemctl show --no-pager -p LoadState,DropInPaths,FragmentPath -- "$1" | base64 | tr -d '\n'; echo
if exec_now=$(busctl --json=short get-property org.freedesktop.systemd1 "$2" org.freedesktop.systemd1.Service ExecStartEx 2>&1)
then printf 'exec '; else printf 'noexec '; fi
printf '%s' "$exec_now" | base64 | tr -d '\n'; echo
)sh";

/// $1 unit. A unit that does not load is never restarted: its running process could not come back.
inline constexpr std::string_view restart = R"sh(export LC_ALL=C
state=$(systemctl show --value -p LoadState -- "$1")
if [ "$state" != loaded ]; then echo "LoadState=$state" >&2; exit 74; fi
systemctl reset-failed -- "$1" 2>/dev/null
exec systemctl restart --no-block -- "$1"
)sh";

/// $1 job's unit, $2 folder, $3 name, then the arguments of systemd-run.
inline constexpr std::string_view start_job = R"sh(export LC_ALL=C
unit=$1 dir=$2 name=$3; shift 3
[ "$(systemctl show --value -p LoadState -- "$unit")" = not-found ] || exit 75
[ -e "$dir/$name.status" ] && exit 75
mkdir -p -- "$dir" || exit 73
exec systemd-run "$@"
)sh";

/// Runs inside the job's unit: $1 folder, $2 name, then the command. The status file appears whole, after the output is
/// complete.
inline constexpr std::string_view job = R"sh(dir=$1 name=$2; shift 2
"$@" >"$dir/$name.out" 2>"$dir/$name.err" </dev/null
code=$?
printf '%s\n' "$code" >"$dir/$name.status.part" && sync "$dir/$name.status.part" && mv -f "$dir/$name.status.part" "$dir/$name.status"
exit "$code"
)sh";

/// $1 job's unit, $2 status file.
inline constexpr std::string_view job_state = R"sh(export LC_ALL=C
systemctl show --no-pager -p LoadState,ActiveState,SubState,Result,ExecMainCode,ExecMainStatus -- "$1" || exit 71
[ -f "$2" ] && { printf 'StatusFile='; head -c 16 -- "$2"; }
exit 0
)sh";

/// $1 job's unit.
inline constexpr std::string_view clear_job = R"sh(export LC_ALL=C
systemctl stop -- "$1" 2>/dev/null
systemctl reset-failed -- "$1" 2>/dev/null
systemctl show --value -p ActiveState -- "$1"
)sh";

}   // namespace campaign::systemd::scripts

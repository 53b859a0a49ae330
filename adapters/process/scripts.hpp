#pragma once
// The constant scripts of plain processes. Operands come as positional parameters.

#include <string_view>

namespace campaign::process::scripts {

/// $1 state_dir, $2 name, $3 hash: values of the environment too (yes or no), then the words that the process may have.
/// A pidfile counts only with the same boot, pid and start time. Without one the process is looked for by equal words.
inline constexpr std::string_view look = R"sh(export LC_ALL=C
dir=$1 name=$2 hashes=$3; shift 3
boot=$(cat /proc/sys/kernel/random/boot_id) || exit 70
printf 'boot %s\n' "$boot"
start_of() {
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    stat=${stat##*) }
    case $stat in Z*|X*) return 1 ;; esac
    printf '%s' "$stat" | cut -d' ' -f20
}
found=
if [ -f "$dir/$name.pid" ]; then
    read -r file_boot file_pid file_start <"$dir/$name.pid"
    case $file_pid in
        ''|*[!0-9]*) ;;
        *) if [ "$file_boot" = "$boot" ] && [ "$(start_of "$file_pid")" = "$file_start" ]; then found=$file_pid; fi ;;
    esac
fi
if [ -z "$found" ]; then
    wanted=$(for word; do printf '%s\0' "$word"; done | sha256sum)
    for one in /proc/[0-9]*; do
        pid=${one#/proc/}
        [ "$(sha256sum <"$one/cmdline" 2>/dev/null)" = "$wanted" ] || continue
        start_of "$pid" >/dev/null || continue
        # The first of a family: children of a server often keep its words.
        stat=$(cat "$one/stat" 2>/dev/null) || continue
        stat=${stat##*) }
        parent=$(printf '%s' "$stat" | cut -d' ' -f2)
        [ "$(sha256sum <"/proc/$parent/cmdline" 2>/dev/null)" = "$wanted" ] && continue
        found=$pid
        break
    done
fi
[ -f "$dir/$name.override" ] && echo 'override yes'
printf 'ticks %s\n' "$(getconf CLK_TCK 2>/dev/null || echo 100)"
if [ -n "$found" ] && start=$(start_of "$found"); then
    printf 'pid %s\nstart %s\nuser %s\n' "$found" "$start" "$(stat -c %U "/proc/$found" 2>/dev/null)"
    head -c 262144 "/proc/$found/cmdline" | tr '\0\n' '\n\001' | sed 's/\\/\\\\/g; s/\x01/\\n/g; s/^/arg /'
    if [ "$hashes" = yes ]; then
        tr '\0\n' '\n\001' 2>/dev/null <"/proc/$found/environ" | while IFS= read -r entry; do
            case $entry in *=*) ;; *) continue ;; esac
            hash=$(printf '%s' "${entry#*=}" | tr '\001' '\n' | sha256sum)
            printf 'env %s %s\n' "${hash%% *}" "${entry%%=*}"
        done
    fi
fi
echo 'end .'
)sh";

/// $1 boot, $2 pid, $3 start time, $4 signal. The group is signalled only while that very process leads it.
inline constexpr std::string_view signal = R"sh(export LC_ALL=C
[ "$(cat /proc/sys/kernel/random/boot_id)" = "$1" ] || exit 0
stat=$(cat "/proc/$2/stat" 2>/dev/null) || exit 0
stat=${stat##*) }
[ "$(printf '%s' "$stat" | cut -d' ' -f20)" = "$3" ] || exit 0
group=$(printf '%s' "$stat" | cut -d' ' -f3)
if [ "$group" = "$2" ]; then kill -s "$4" -- "-$2"; else kill -s "$4" -- "$2"; fi
)sh";

/// $1 state_dir, $2 name, $3 directory, $4 log, then words for env(1): NAME=VALUE ... command ...
/// The starter waits until the pidfile is there, so that a lost connection leaves either no process or one that can be
/// found.
inline constexpr std::string_view start = R"sh(export LC_ALL=C
dir=$1 name=$2 cwd=$3 log=$4; shift 4
mkdir -p -- "$dir" || exit 73
cd -- "$cwd" || exit 74
: >>"$log" || exit 76
rm -f -- "$dir/$name.pid"
setsid -f sh -c '
dir=$1 name=$2; shift 2
stat=$(cat /proc/$$/stat); stat=${stat##*) }
printf "%s %s %s\n" "$(cat /proc/sys/kernel/random/boot_id)" "$$" "$(printf "%s" "$stat" | cut -d" " -f20)" >"$dir/$name.pid.part" &&
mv -f "$dir/$name.pid.part" "$dir/$name.pid" || exit 73
exec env -i "PATH=$PATH" "HOME=${HOME:-/}" LANG=C.UTF-8 "$@"' campaignd-start "$dir" "$name" "$@" </dev/null >>"$log" 2>&1
tries=0
while [ ! -f "$dir/$name.pid" ]; do
    tries=$((tries + 1)); [ "$tries" -gt 100 ] && exit 77
    sleep 0.05
done
)sh";

/// $1 log. "DEV INODE SIZE", then the first 64 bytes' count and hash.
inline constexpr std::string_view position = R"sh(export LC_ALL=C
[ -f "$1" ] || { echo '0 0 0 0 -'; exit 0; }
place=$(stat -c '%d %i %s' -- "$1") || exit 71
size=${place##* }
count=64; [ "$size" -lt 64 ] && count=$size
hash=$(head -c "$count" -- "$1" | sha256sum)
printf '%s %s %s\n' "$place" "$count" "${hash%% *}"
)sh";

/// $1 log, $2 device, $3 inode, $4 offset, $5 count and $6 hash of the first bytes, $7 follow or read.
/// Finds the file of the position, also when it was renamed beside the log; prints lines "K DEV INODE OFFSET COUNT HASH"
/// when a file begins (K = at, next, gap) and "T text" for each whole line. A file that was cut off begins anew after a gap.
inline constexpr std::string_view tail = R"sh(export LC_ALL=C
log=$1 dev=$2 ino=$3 off=$4 count=$5 hash=$6 mode=$7
head_hash() { h=$(head -c "$2" -- "$1" 2>/dev/null | sha256sum); printf '%.16s' "$h"; }
announce() {
    size=$(stat -L -c %s -- "$2") || size=0
    n=64; [ "$size" -lt 64 ] && n=$size
    printf '%s %s %s %s %s\n' "$1" "$(stat -L -c '%d %i' -- "$2")" "$3" "$n" "$(head_hash "$2" "$n")"
}
part() { tail -c "+$((from + 1))" "$held" | head -c "$1"; }
copy() { tail -c "+$(($2 + 1))" -- "$1" | sed 's/^/T /'; }
kind=at from=$off
current=$(stat -c '%d %i' -- "$log" 2>/dev/null)
if [ "$ino" = 0 ]; then
    kind=at from=0
elif [ "$current" = "$dev $ino" ]; then
    size=$(stat -c %s -- "$log")
    if [ "$size" -lt "$off" ] || [ "$(head_hash "$log" "$count")" != "$hash" ]; then kind=gap from=0; fi
else
    old=$(find "$(dirname -- "$log")" -maxdepth 1 -inum "$ino" -type f 2>/dev/null | head -n 1)
    if [ -n "$old" ] && [ "$(head_hash "$old" "$count")" = "$hash" ]; then
        announce at "$old" "$off"
        copy "$old" "$off"
        kind=next from=0
    else
        kind=gap from=0
    fi
fi
if [ "$mode" = read ]; then
    [ -f "$log" ] || exit 0
    announce "$kind" "$log" "$from"
    copy "$log" "$from"
    exit 0
fi
while :; do
    until [ -f "$log" ]; do sleep 0.2; done
    exec 3<"$log"
    held=/proc/$$/fd/3
    place=$(stat -L -c '%d %i' "$held")
    announce "$kind" "$held" "$from"
    # This file, until another has taken its name and it was read to its end, or until it was cut off.
    while :; do
        now=$(stat -c '%d %i' -- "$log" 2>/dev/null)
        size=$(stat -L -c %s "$held")
        if [ "$size" -lt "$from" ]; then kind=gap; break; fi
        new=$((size - from))
        if [ "$new" -gt 0 ] && [ "$(part "$new" | tail -c 1 | wc -l)" = 0 ]; then
            new=$((new - $(part "$new" | tail -n 1 | wc -c)))   # a line that is still being written
        fi
        if [ "$new" -gt 0 ]; then
            part "$new" | sed 's/^/T /'
            from=$((from + new))
            continue
        fi
        if [ -n "$now" ] && [ "$now" != "$place" ]; then kind=next; break; fi
        sleep 0.2
    done
    exec 3<&-
    from=0
done
)sh";

/// $1 folder, $2 name, $3 seconds or 0, $4 list of CPUs or empty, then words for env(1). The job leads a session of its own.
inline constexpr std::string_view start_job = R"sh(export LC_ALL=C
dir=$1 name=$2 limit=$3 cpus=$4; shift 4
mkdir -p -- "$dir" || exit 73
[ -e "$dir/$name.status" ] && exit 75
# Whoever makes this folder is the one who starts it.
mkdir -- "$dir/$name.started" 2>/dev/null || exit 75
[ -n "$cpus" ] && set -- taskset -c "$cpus" env "$@" || set -- env "$@"
[ "$limit" != 0 ] && set -- timeout -k 10 "$limit" "$@"
setsid -f sh -c '
dir=$1 name=$2; shift 2
stat=$(cat /proc/$$/stat); stat=${stat##*) }
printf "%s %s %s\n" "$(cat /proc/sys/kernel/random/boot_id)" "$$" "$(printf "%s" "$stat" | cut -d" " -f20)" >"$dir/$name.pid.part" &&
mv -f "$dir/$name.pid.part" "$dir/$name.pid"
"$@" >"$dir/$name.out" 2>"$dir/$name.err" </dev/null
code=$?
printf "%s\n" "$code" >"$dir/$name.status.part" && sync "$dir/$name.status.part" && mv -f "$dir/$name.status.part" "$dir/$name.status"
' campaignd-job "$dir" "$name" "$@" </dev/null >/dev/null 2>&1
tries=0
while [ ! -f "$dir/$name.pid" ]; do
    tries=$((tries + 1)); [ "$tries" -gt 100 ] && exit 77
    sleep 0.05
done
)sh";

/// $1 folder, $2 name. "ended CODE", "running BOOT PID START", "lost" (it was started and is gone without a status) or
/// "absent".
inline constexpr std::string_view job_state = R"sh(export LC_ALL=C
state() {
    [ -f "$1.status" ] && { printf 'ended '; head -c 16 -- "$1.status"; exit 0; }
    return 0
}
at=$1/$2
state "$at"
[ -d "$at.started" ] || { echo absent; exit 0; }
read -r boot pid start <"$at.pid" 2>/dev/null
if [ -n "$start" ] && [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ]; then
    stat=$(cat "/proc/$pid/stat" 2>/dev/null)
    stat=${stat##*) }
    [ "$(printf '%s' "$stat" | cut -d' ' -f20)" = "$start" ] && { printf 'running %s %s %s\n' "$boot" "$pid" "$start"; exit 0; }
fi
state "$at"
echo lost
)sh";

}   // namespace campaign::process::scripts

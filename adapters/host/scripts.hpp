#pragma once
// The constant scripts that handle files on a host. Operands come as positional parameters, never by substitution.

#include <string_view>

namespace campaign::host::scripts {

/// $1 path, $2 mode, $3 size, $4 sha256; content on standard input. Prints the hash as read back.
/// 74: too little space; 75: other bytes arrived than were sent. The part file goes, whatever happens.
inline constexpr std::string_view write = R"sh(export LC_ALL=C
folder=${1%/*}; [ -n "$folder" ] || folder=/
umask 022
[ -d "$folder" ] || mkdir -p -- "$folder" || exit 73
free=$(df -Pk -- "$folder" | awk 'NR == 2 { print $4 }')
if [ -n "$free" ] && [ "$free" -lt $(($3 / 1024 + 64)) ]; then
    echo "$free KiB free in $folder" >&2; exit 74
fi
umask 077
part=$(mktemp -- "$1.part.XXXXXXXX") || exit 73
trap 'rm -f -- "$part"' EXIT
trap 'exit 76' HUP INT TERM PIPE
cat >"$part" || exit 73
sync -- "$part" || exit 73
sum=$(sha256sum <"$part") || exit 73
[ "${sum%% *}" = "$4" ] || { echo "${sum%% *}" >&2; exit 75; }
chmod -- "$2" "$part" || exit 73
mv -T -f -- "$part" "$1" || exit 73
sync -- "$folder" || exit 73
sum=$(sha256sum <"$1") || exit 73
echo "${sum%% *}"
)sh";

/// $1 path. Prints mode, size and hash of a file.
inline constexpr std::string_view look = R"sh(export LC_ALL=C
facts=$(stat -L -c '%a %s' -- "$1") || exit 73
sum=$(sha256sum <"$1") || exit 73
echo "$facts ${sum%% *}"
)sh";

/// $1 path, $2 most bytes.
inline constexpr std::string_view read = R"sh(export LC_ALL=C
[ ! -d "$1" ] || { echo "$1: Is a directory" >&2; exit 73; }
exec head -c "$2" -- "$1"
)sh";

/// $1 path, $2 sha256. Prints "removed"; 75: it is another file.
inline constexpr std::string_view remove = R"sh(export LC_ALL=C
stat -- "$1" >/dev/null || exit 73
if [ -L "$1" ] || [ ! -f "$1" ]; then echo "not a regular file"; exit 75; fi
sum=$(sha256sum <"$1") || exit 73
[ "${sum%% *}" = "$2" ] || { echo "its SHA-256 is ${sum%% *}"; exit 75; }
rm -- "$1" || exit 73
folder=${1%/*}; sync -- "${folder:-/}"
echo removed
)sh";

/// $1 path.
inline constexpr std::string_view remove_empty = R"sh(rmdir -- "$1" 2>/dev/null
exit 0
)sh";

/// $1 folder. Regular files as "F SIZE MTIME DEVICE:INODE NAME NUL", then "W DEVICE:INODE NUL" for each of them that a
/// process has open for writing. Files are met by device and inode, so that a server in a container counts, whose paths are
/// others.
inline constexpr std::string_view list = R"sh(export LC_ALL=C
stat -- "$1/." >/dev/null || exit 73
find "$1/." -maxdepth 1 -type f -printf 'F %s %T@ %D:%i %f\0' | head -z -n 10000
ids=$(find "$1/." -maxdepth 1 -type f -printf '%D:%i\n' | head -n 10000)
{ printf '%s\n.\n' "$ids"
  find -L /proc/[0-9]*/fd -maxdepth 1 -type f -printf '%D:%i %p\n' 2>/dev/null; } |
awk '$0 == "." { body = 1; next } !body { ours[$1] = 1; next } ($1 in ours) { print $1, $2 }' |
while read -r id link; do
    info=${link%/fd/*}/fdinfo/${link##*/}
    flags=$(sed -n 's/^flags:[[:space:]]*//p' "$info" 2>/dev/null)
    case $flags in *[123567]) printf 'W %s\0' "$id" ;; esac
done
)sh";

/// $1 path. Prints the size of a regular file.
inline constexpr std::string_view size = R"sh(export LC_ALL=C
[ ! -d "$1" ] || { echo "$1: Is a directory" >&2; exit 73; }
exec stat -L -c %s -- "$1"
)sh";

/// $1 path, $2 bytes. Prints the hash of that prefix.
inline constexpr std::string_view prefix_hash = R"sh(export LC_ALL=C
head -c "$2" -- "$1" | sha256sum
)sh";

/// $1 path, $2 first byte (from 1), $3 bytes.
inline constexpr std::string_view stream = R"sh(export LC_ALL=C
tail -c "+$2" -- "$1" | head -c "$3"
)sh";

}   // namespace campaign::host::scripts

#!/bin/bash
# can.sh: can this machine run the test hosts? Prints nothing and ends with 0, or the reason and 77.
# Needs root and the right to make namespaces and to mount overlay and cgroup2 in them (a plain container may not).
[ "$(id -u)" = 0 ] || { echo "test hosts need root (this is user $(id -un))"; exit 77; }
for tool in unshare nsenter setpriv; do
  command -v $tool >/dev/null || { echo "test hosts need $tool (Debian package util-linux)"; exit 77; }
done
why=$(unshare --pid --fork --mount --uts --ipc --net --cgroup true 2>&1) ||
  { echo "this machine refuses namespaces: $why"; exit 77; }
why=$(unshare --mount --cgroup --propagation private sh -c '
  mount -t tmpfs none /mnt && mkdir /mnt/l /mnt/u /mnt/w /mnt/r /mnt/c &&
  mount -t overlay -o lowerdir=/mnt/l,upperdir=/mnt/u,workdir=/mnt/w overlay /mnt/r && mount -t cgroup2 none /mnt/c' 2>&1) ||
  { echo "this machine refuses overlay or cgroup2 mounts: ${why##*$'\n'}"; exit 77; }

#!/usr/bin/env python3
"""interleave.py ROUNDS CMD_A -- CMD_B: each CMD starts a spawn-timer; its rounds alternate, A first in one, B first in the next.

Prints medians, quartiles and the ratio of medians A/B, and the machine's load. Ends with 1 when A's median is above B's.
"""
import os
import shlex
import statistics
import subprocess
import sys

rounds, rest = int(sys.argv[1]), sys.argv[2:]
split = rest.index("--")
commands = {"campaignctl status": rest[:split], "systemctl is-active": rest[split + 1:]}
timers = {name: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
          for name, command in commands.items()}


def once(name):
    timers[name].stdin.write("go\n")
    line = timers[name].stdout.readline().split()
    if len(line) != 2:
        sys.exit("%s: the timer ended: %s" % (name, shlex.join(commands[name])))
    return int(line[0]) / 1e6, int(line[1])


def statuses(name):
    return sorted({status for _, status in taken[name]})


load_before = os.getloadavg()[0]
for name in timers:   # the page cache and the daemon's first answer are not what is compared
    for _ in range(5):
        once(name)
taken = {name: [] for name in timers}
for number in range(rounds):
    for name in (list(timers) if number % 2 == 0 else list(timers)[::-1]):
        taken[name].append(once(name))
for timer in timers.values():
    timer.stdin.close()
    timer.wait()

print("%-20s %8s %8s %8s %8s  %s" % ("", "median", "p25", "p75", "p95", "exit codes"))
medians = {}
for name in timers:
    times = [took for took, _ in taken[name]]
    cuts = statistics.quantiles(times, n=20)
    medians[name] = statistics.median(times)
    print("%-20s %7.2f %8.2f %8.2f %8.2f   ms  %s" % (name, medians[name], cuts[4], cuts[14], cuts[18], statuses(name)))
first, second = medians.values()
print("ratio of medians %.2f over %d rounds; load average %.2f before, %.2f after, %d processors"
      % (first / second, rounds, load_before, os.getloadavg()[0], os.cpu_count()))
for name in timers:
    if any(status not in (0, 4) for status in statuses(name)):
        sys.exit("%s did not answer as it should: exit codes %s" % (name, statuses(name)))
sys.exit(0 if first <= second else 1)

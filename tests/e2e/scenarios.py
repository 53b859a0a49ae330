"""End-to-end scenarios on a real host. One function each; CMakeLists.txt registers them with ctest."""

import json
import os
import signal
import subprocess
import time

from lab import (Daemon, Host, artifacts_are_whole, as_found, check, main, plan, wait_for, BIN, UNIT)

PROFILER = ("start_profile",)


def gpu1(**options):
    host = Host("gpu1")
    host.provision(**options)
    return host


def profiles_started(host):
    return host.count("start_profile", phase="received")


def approve_when_asked(daemon, name):
    daemon.wait_state(name, "waiting")
    label = wait_for("the question", lambda: next((n["subject"] for n in daemon.campaign(name)["needs"]), None))
    daemon.ctl("approve", name, label, "torch-profile")


def reference():
    """The whole story: probe without side effect, pivot, approval, restart, load, profile, traces, restore, report."""
    host = gpu1(load=8)
    daemon = Daemon().start()
    name = daemon.submit(plan(load="8s"))
    daemon.wait_state(name, "waiting")
    check(profiles_started(host) == 0, "the probe must not start a profile")
    as_found(host, 1)
    decision = daemon.ctl("status", name)
    check("torch-profile" in decision, "the status must name what waits for approval")
    approve_when_asked(daemon, name)
    daemon.ctl("wait", name, "--timeout", "240s")
    as_found(host, 3)
    check(profiles_started(host) == 1, "exactly one profile")
    rows = artifacts_are_whole(daemon, name)
    check(sum(row["kind"] == "trace" for row in rows) == 2, "a trace of each of 2 ranks")
    report = daemon.report(name)
    for word in ("all-reduce", "TPOT", "torch-profile", "needs approval", "SHA-256", "verified"):
        check(word.lower() in report.lower(), f"the report must have {word!r}")
    # Pacing: what the record says of the detection, against the server's own time stamp.
    ready = [e["at_us"] for e in host.truth() if e["event"] == "ready"]
    waits = [e for e in daemon.events(name) if e["kind"] == "step" and e["data"]["subject"].endswith("await-ready") and e["data"]["state"] == "done"]
    check(len(ready) == 3 and len(waits) == 2, f"three loads, two of them watched: {len(ready)} {len(waits)}")
    for true, wait in zip(ready[1:], waits):
        detail = wait["data"]["detail"]
        check("probes, proven healthy" in detail, f"probes and the delay must be on record: {detail}")
        print(f"ready by the server's own word {true}; on record: {detail}")


def killed(point):
    """kill -9 at a point; started again it goes on, nothing is done twice and nothing is lost."""
    host = gpu1(load=6, env=["STANDIN_STOP_S=5"])
    daemon = Daemon().start()
    name = daemon.submit(plan(restart="allow", load="6s", phases="""
  - name: where-does-decode-go
    measure: decode-step
    capture: {warmup: 4, steps: 20, output_tokens: 40, input_tokens: 32}
"""))
    where, state = {
        "load": ("session/kimi/profiler/4/await-ready", "intent"),
        "restart": ("session/kimi/profiler/3/restart-unit", "intent"),
        "start-profile": ("/start-profile", "done"),
        "stop": ("/stop-profile", "intent"),
        "fetch": ("/fetch-trace", "intent"),
        "restore": ("restore/1/r1/3/restart-unit", "intent"),
    }[point]
    daemon.wait_step(name, where, state)
    if point in ("load", "stop"):
        time.sleep(1)
    daemon.kill()
    time.sleep(1)
    daemon.start()
    daemon.ctl("wait", name, "--timeout", "240s")
    as_found(host, 3)
    check(profiles_started(host) == 1, f"exactly one profile, not {profiles_started(host)}")
    check(host.count("stop_profile", phase="received") == 1, "exactly one stop")
    rows = artifacts_are_whole(daemon, name)
    check(sum(row["kind"] == "trace" for row in rows) == 2, "a trace of each of 2 ranks")


POINTS = {
    "preflight": "preflight/kimi",
    "macro": "how-fast/macro",
    "waiting": "await-approval",
    "load": "session/kimi/profiler/4/await-ready",
    "capture": "/capture",
    "restore": "restore/1/r1/4/await-ready",
}


def reach_point(daemon, name, point):
    if point in ("load", "capture", "restore"):
        approve_when_asked(daemon, name)
    if point == "capture":
        daemon.wait_step(name, "/start-profile", "done")
        return
    daemon.wait_step(name, POINTS[point])


def cancelled(point):
    host = gpu1(load=5)
    daemon = Daemon().start()
    name = daemon.submit(plan(load="5s"))
    reach_point(daemon, name, point)
    daemon.ctl("cancel", name, f"--yes={name}")
    daemon.ctl("wait", name, "--timeout", "200s", code=5)
    as_found(host)
    if point not in ("preflight",):
        check(daemon.production(name)["state"] == "verified", f"production must be verified: {daemon.production(name)}")


def terminated(point):
    """SIGTERM parks the campaign; the next start takes it to its end."""
    host = gpu1(load=5)
    daemon = Daemon().start()
    name = daemon.submit(plan(load="5s"))
    reach_point(daemon, name, point)
    daemon.terminate()
    daemon.start()
    if point in ("preflight", "macro", "waiting"):
        approve_when_asked(daemon, name)
    daemon.ctl("wait", name, "--timeout", "240s")
    as_found(host, 3)
    check(profiles_started(host) == 1, "exactly one profile")


def load_fails():
    """A server that dies of CUDA OOM in profiler mode: the cause is named, production comes back, what was gathered stays."""
    host = gpu1(load=4)
    daemon = Daemon().start()
    name = daemon.submit(plan(load="4s"))
    daemon.wait_state(name, "waiting")
    # It fails once: as soon as its second start is seen the fault is taken away.
    host.run("sh", "-c", "echo '{\"load\": \"oom\"}' >/etc/standin/faults.json")
    approve_when_asked(daemon, name)
    wait_for("the failing start", lambda: host.starts() >= 2, 60)
    daemon.wait_step(name, "session/kimi/profiler/4/await-ready", "failed")
    host.run("sh", "-c", "echo '{}' >/etc/standin/faults.json")
    daemon.ctl("wait", name, "--timeout", "200s", code=None)
    failed = daemon.step_seen(name, "session/kimi/profiler/4/await-ready", "failed")
    check("cuda_oom" in failed["data"]["detail"], f"the cause must be named: {failed['data']['detail']}")
    as_found(host)
    check(daemon.production(name)["state"] == "verified", "production must be verified")
    report = daemon.report(name)
    check("how-fast" in report and "cuda\\_oom" in report, "the report keeps what was measured and says what failed")


def no_files():
    """stop_profile answers 200 and no file comes: said, not believed."""
    host = gpu1(load=3, faults='{"stop": "no_files"}')
    daemon = Daemon().start()
    name = daemon.submit(plan(restart="allow", load="3s"))
    wait_for("the wait for traces", lambda: daemon.step_seen(name, "/await-traces"), 120)
    daemon.ctl("cancel", name, f"--yes={name}")
    daemon.ctl("wait", name, "--timeout", "120s", code=5)
    as_found(host)
    check(not any(row["kind"] == "trace" for row in daemon.get(f"/v1/campaigns/{name}/artifacts")["artifacts"]), "there is no trace")


def bad_luck():
    """Plans and hosts that cannot work: each a clear error with its cause and next step, and nothing changed."""
    host = gpu1(load=2)
    daemon = Daemon().start()

    def fails(text, *words, code=3):
        name = daemon.submit(text)
        daemon.ctl("wait", name, "--timeout", "120s", code=code)
        shown = daemon.ctl("status", name)
        for word in words:
            check(word in shown, f"{name}: the status must say {word!r}:\n{shown}")

    fails(plan("no-unit").replace(UNIT, "absent.service"), "has no unit absent.service")
    fails(plan("no-model").replace("load_time: 6s", "load_time: 6s, model: nosuch"), "nosuch", "kimi")
    host.run("systemctl", "stop", UNIT)
    fails(plan("inactive"), "not active")
    host.run("systemctl", "start", UNIT)
    wait_for("health", lambda: host.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:8000/health", fine=None) == "200")
    host.argv = host.cmdline()

    # The same plan twice.
    text = plan("twice")
    name = daemon.submit(text)
    shown = daemon.ctl("submit", str(daemon.home / "plan.yaml"), code=None)
    check("already submitted as twice" in shown, f"the second submission must name the first: {shown}")
    daemon.ctl("cancel", name, f"--yes={name}")
    daemon.ctl("wait", name, "--timeout", "60s", code=5)

    # A plan with errors never reaches a host.
    shown = daemon.ctl("plan", "check", write(daemon, plan("broken").replace("max_downtime", "max_downtme")), code=11)
    check("max_downtime" in shown, f"the nearest key must be suggested: {shown}")
    as_found(host)


def write(daemon, text):
    file = daemon.home / "other.yaml"
    file.write_text(text)
    return str(file)


def bad_access():
    """Unknown and changed host keys, a refused key, no sudo right, nobody there."""
    host = gpu1(load=2)
    config = open(os.environ["TESTHOST_SSH_CONFIG"]).read()
    known = config.split("UserKnownHostsFile ")[1].split()[0]
    home = Daemon().home

    def with_config(label, change, *words, text=None):
        file = home / f"config-{label}"
        file.write_text(change(config))
        daemon = Daemon(ssh_config=str(file)).start()
        name = daemon.submit(text or plan(label))
        daemon.ctl("wait", name, "--timeout", "120s", code=3)
        shown = daemon.ctl("status", name)
        for word in words:
            check(word.lower() in shown.lower(), f"{label}: the status must say {word!r}:\n{shown}")
        daemon.terminate()

    empty = home / "known-empty"
    empty.write_text("")
    with_config("unknown-key", lambda c: c.replace(known, str(empty)), "host key", "known_hosts")
    other = home / "known-changed"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / "other")], check=True)
    key = (home / "other.pub").read_text().split()[:2]
    lines = [line.split() for line in open(known)]
    other.write_text("".join(f"{line[0]} {' '.join(key)}\n" for line in lines))
    with_config("changed-key", lambda c: c.replace(known, str(other)), "changed")
    with_config("refused-key", lambda c: "\n".join(f" IdentityFile {home / 'other'}" if "IdentityFile" in l else l for l in c.splitlines()) + "\n", "refused")
    host.run("sh", "-c", "id nobodyop >/dev/null 2>&1 || useradd -m nobodyop; mkdir -p /home/nobodyop/.ssh; cp /root/.ssh/authorized_keys /home/nobodyop/.ssh/; "
             "chown -R nobodyop /home/nobodyop/.ssh; rm -f /etc/sudoers.d/nobodyop")
    with_config("no-sudo", lambda c: c.replace(" User root", " User nobodyop"), "sudo", text=plan("no-sudo", sudo=True))
    as_found(host)


def process_service():
    """The same campaign on the daemon's own machine with a server that the plan starts by its command line."""
    import pathlib
    import tempfile
    home = pathlib.Path(tempfile.mkdtemp(prefix="campaignd-local-"))
    subprocess.run([str(__import__("lab").SOURCE / "tests/e2e/local_service.sh"), "start", str(home)], check=True)
    try:
        daemon = Daemon(ssh_config="").start()
        text = (home / "plan.yaml").read_text()
        name = daemon.submit(text)
        approve_when_asked(daemon, name)
        daemon.ctl("wait", name, "--timeout", "240s")
        truth = [json.loads(line) for line in (home / "truth.jsonl").read_text().splitlines()]
        check(sum(e["event"] == "start" for e in truth) == 3, "two restarts, no more")
        check(sum(e["event"] == "start_profile" and e["phase"] == "received" for e in truth) == 1, "exactly one profile")
        check(sum(row["kind"] == "trace" for row in artifacts_are_whole(daemon, name)) == 2, "a trace of each of 2 ranks")
        check(daemon.production(name)["state"] == "verified", "production must be verified")
    finally:
        subprocess.run([str(__import__("lab").SOURCE / "tests/e2e/local_service.sh"), "stop", str(home)], check=True)


def nsys_capture():
    """With nsys on the host and the torch profiler not wanted: a session under nsys launch, collected, exported, analysed there."""
    host = gpu1(load=3, nsys=True)
    daemon = Daemon().start()
    name = daemon.submit(plan(restart="allow", load="3s", phases="""
  - name: where-does-decode-go
    measure: decode-step
    methods: [nsys, macro]
    load: {input_tokens: 32, output_tokens: 16, requests: 4}
    capture: {warmup: 4, steps: 20, output_tokens: 40, input_tokens: 32}
"""))
    daemon.ctl("wait", name, "--timeout", "200s")
    as_found(host, 3)
    rows = artifacts_are_whole(daemon, name)
    check(any(row["kind"] == "analysis" for row in rows), "the export must be analysed")
    check(not any(row["name"].endswith((".sqlite", ".nsys-rep")) for row in rows), "an nsys file holds the server's environment: it is never fetched")
    check("nsys" in daemon.report(name), "the report must name the method")


def cut_line():
    """The line is cut while the model loads, and heals: nothing is done twice."""
    host = gpu1(load=10)
    daemon = Daemon().start()
    name = daemon.submit(plan(restart="allow", load="10s"))
    daemon.wait_step(name, "session/kimi/profiler/4/await-ready")
    time.sleep(1)
    host.act("cut")
    time.sleep(8)
    host.act("heal")
    daemon.ctl("wait", name, "--timeout", "300s")
    as_found(host, 3)
    check(profiles_started(host) == 1, "exactly one profile")


SCENARIOS = {
    "reference": reference,
    "load-fails": load_fails,
    "no-files": no_files,
    "bad-luck": bad_luck,
    "bad-access": bad_access,
    "process": process_service,
    "cut-line": cut_line,
    "nsys": nsys_capture,
}
for _point in ("restart", "load", "start-profile", "stop", "fetch", "restore"):
    SCENARIOS[f"killed-{_point}"] = lambda point=_point: killed(point)
for _point in POINTS:
    SCENARIOS[f"cancelled-{_point}"] = lambda point=_point: cancelled(point)
    SCENARIOS[f"terminated-{_point}"] = lambda point=_point: terminated(point)

if __name__ == "__main__":
    main(SCENARIOS)

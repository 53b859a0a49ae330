"""What end-to-end tests share: a daemon under test, its command, a test host with the stand-in server, and their own records.

Tests drive the installed programs from outside: a plan goes in, a report comes out, and what really happened is read from the
stand-in's own record and from the host's systemd, never from the daemon's word alone.
"""

import atexit
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["CAMPAIGN_BIN"])
SOURCE = pathlib.Path(os.environ["CAMPAIGN_SOURCE"])
TRUTH = "/var/lib/standin/truth.jsonl"
UNIT = "vllm-standin.service"


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("campaignd", timeout=30)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        self.sock.connect(self.path)


class Failure(AssertionError):
    pass


def check(good, text):
    if not good:
        raise Failure(text)


def wait_for(what, condition, seconds=60, pace=0.05):
    """The first true value of condition(), or a failure that says what was waited for."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"waited {seconds} s for {what}")
        time.sleep(pace)


class Host:
    """A test host; see tests/hosts/testhost.sh."""

    def __init__(self, name):
        self.name = name
        self.tool = os.environ["TESTHOST"]

    def act(self, verb, *arguments):
        subprocess.run([self.tool, verb, self.name, *arguments], check=True, stdout=subprocess.DEVNULL)

    def run(self, *command, fine=(0,)):
        done = subprocess.run([self.tool, "exec", self.name, "--", *command], capture_output=True, text=True)
        check(fine is None or done.returncode in fine, f"{command} on {self.name}: {done.returncode} {done.stderr}")
        return done.stdout

    def provision(self, load=3, **options):
        command = [str(SOURCE / "tests/hosts/provision.sh"), self.name, "--load", str(load)]
        for key, value in options.items():
            for item in value if isinstance(value, list) else [value]:
                command += [f"--{key.replace('_', '-')}"] + ([] if item is True else [str(item)])
        subprocess.run(command, check=True, env={**os.environ, "STANDIN_SERVER": str(BIN / "standin-server")})
        self.first = self.property("InvocationID")
        self.argv = self.cmdline()

    def property(self, name, unit=UNIT):
        return self.run("systemctl", "show", "-P", name, unit).strip()

    def cmdline(self):
        pid = self.property("MainPID")
        return self.run("cat", f"/proc/{pid}/cmdline", fine=(0, 1)).split("\0")

    def truth(self):
        """What the stand-in itself recorded."""
        lines = self.run("cat", TRUTH, fine=(0, 1)).splitlines()
        return [json.loads(line) for line in lines if line.strip()]

    def count(self, event, **members):
        return sum(1 for e in self.truth() if e["event"] == event and all(str(e.get(k)) == str(v) for k, v in members.items()))

    def starts(self):
        return self.count("start")

    def leftovers(self):
        """Files of ours on the host that a finished campaign must not leave."""
        found = self.run("sh", "-c", "ls -d /run/systemd/system/*.d/zz-campaignd.conf /etc/systemd/system/*.d/zz-campaignd.conf "
                         "/var/lib/campaignd-host/jobs/* 2>/dev/null; systemctl list-units --all --plain --no-legend 'campaignd-*' | cut -d' ' -f1")
        return found.split()


class Daemon:
    def __init__(self, ssh_config=None, state=None):
        self.home = pathlib.Path(state or tempfile.mkdtemp(prefix="campaignd-e2e-"))
        self.socket = self.home / "api.sock"
        self.log = self.home / "daemon.log"
        self.ssh_config = ssh_config or os.environ.get("TESTHOST_SSH_CONFIG")
        self.process = None
        atexit.register(self.clean)

    def start(self):
        command = [str(BIN / "campaignd"), "--state-dir", str(self.home / "state"), "--socket", str(self.socket), "--log-level", "debug"]
        if self.ssh_config:
            command += ["--ssh-config", self.ssh_config]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait_for("the daemon's socket", self.answers, 20)
        return self

    def answers(self):
        check(self.process.poll() is None, f"the daemon ended: {self.log.read_text()[-2000:]}")
        try:
            return self.get("/v1/version")
        except OSError:
            return None

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(timeout=60) == 0, "SIGTERM must end the daemon with 0")

    def clean(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if os.environ.get("KEEP") != "1":
            shutil.rmtree(self.home, ignore_errors=True)

    def get(self, path):
        connection = Unix(self.socket)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            check(answer.status == 200, f"GET {path}: {answer.status} {body[:400]}")
            return json.loads(body)
        finally:
            connection.close()

    def events(self, name, after=0):
        connection = Unix(self.socket)
        try:
            connection.request("GET", f"/v1/campaigns/{name}/events?after={after}")
            body = connection.getresponse().read().decode()
            return [json.loads(line) for line in body.splitlines() if line.strip()]
        finally:
            connection.close()

    def ctl(self, *arguments, code=0, text=None):
        """campaignctl with these arguments; its output. `code`: the exit status it must have (None: any)."""
        done = subprocess.run([str(BIN / "campaignctl"), "--socket", str(self.socket), *arguments], capture_output=True, text=True, input=text or "",
                              env={**os.environ, "NO_COLOR": "1"}, timeout=600)
        check(code is None or done.returncode == code, f"campaignctl {' '.join(arguments)}: exit {done.returncode}, wanted {code}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def submit(self, plan):
        file = self.home / "plan.yaml"
        file.write_text(plan)
        answer = json.loads(self.ctl("submit", str(file), "--json"))
        return answer["id"]

    def campaign(self, name):
        return self.get(f"/v1/campaigns/{name}")

    def step_seen(self, name, word, state=None):
        """The newest event of a step whose path holds `word` (in that state)."""
        found = None
        for event in self.events(name):
            if event["kind"] == "step" and word in event["data"]["subject"] and state in (None, event["data"]["state"]):
                found = event
        return found

    def wait_step(self, name, word, state="intent", seconds=120):
        return wait_for(f"step {word} {state}", lambda: self.step_seen(name, word, state), seconds)

    def wait_state(self, name, *states, seconds=180):
        def now():
            for event in reversed(self.events(name)):
                if event["kind"] == "campaign":
                    return event["data"]["state"] if event["data"]["state"] in states else None
        return wait_for(f"{name} to be {' or '.join(states)}", now, seconds, 0.1)

    def production(self, name):
        last = None
        for event in self.events(name):
            if event["kind"] == "production":
                last = event["data"]
        return last

    def report(self, name):
        return self.ctl("report", name)


def plan(name="k25", restart="ask", load="6s", host="gpu1", extra="", phases=None, sudo=False):
    """The reference campaign in small."""
    phases = phases or """
  - name: warm-up
    measure: warm-up
  - name: how-fast
    measure: throughput
    load: {concurrency: [1, 4], input_tokens: 64, output_tokens: 16, requests: 6}
  - name: where-does-decode-go
    measure: decode-step
    load: {input_tokens: 32, output_tokens: 16, requests: 4}
    capture: {warmup: 4, steps: 20, output_tokens: 40, input_tokens: 32}
"""
    return f"""campaign: {name}
hosts:
  {host}: {{ssh: {host}{', sudo: true' if sudo else ''}}}
services:
  kimi: {{host: {host}, unit: {UNIT}, url: "http://127.0.0.1:8000", load_time: {load}}}
policy:
  restart: {restart}
  max_downtime: 30m
restore: {{probe: within 60%}}
{extra}
phases:{phases}"""


def as_found(host, starts_wanted=None):
    """Production is what it was, by the host's own word."""
    check(host.property("ActiveState") == "active", "the unit must be active")
    check(host.cmdline() == host.argv, f"argv must be as found: {host.cmdline()}")
    check(host.property("DropInPaths") == "", f"no drop-in may be left: {host.property('DropInPaths')}")
    check(host.leftovers() == [], f"nothing of ours may be left on the host: {host.leftovers()}")
    if starts_wanted is not None:
        check(host.starts() == starts_wanted, f"the server was started {host.starts()} times, wanted {starts_wanted}")


def artifacts_are_whole(daemon, name):
    """Each artifact is in the vault with the hash that the record names."""
    rows = daemon.get(f"/v1/campaigns/{name}/artifacts")["artifacts"]
    check(rows, "there must be artifacts")
    for row in rows:
        target = daemon.home / "copy"
        daemon.ctl("artifacts", name, "get", row["sha256"], "-o", str(target))
        import hashlib
        got = hashlib.sha256(target.read_bytes()).hexdigest()
        check(got == row["sha256"], f"{row['name']}: {got} is not {row['sha256']}")
    return rows


def main(scenarios):
    """Runs the scenario named on the command line."""
    name = sys.argv[1]
    try:
        scenarios[name]()
    except Failure as failure:
        print(f"FAILED {name}: {failure}", flush=True)
        sys.exit(1)
    print(f"ok {name}")

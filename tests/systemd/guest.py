#!/usr/bin/env python3
"""What the virtual machine of tests/systemd/run does: it upgrades the package, starts each unit as its page says, attacks it, stops it,
and says what it saw."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import traceback

TRIAL = pathlib.Path("/trial")
PROGRAM = "/usr/bin/outrigger"
CONFIGS = pathlib.Path("/etc/outrigger")
GROUPS = pathlib.Path("/sys/fs/cgroup/system.slice")

# Every plugin runs in a process of its own, and this one besides.
HOSTILE = """
[[plugins]]
file = "hostile"
isolated = true
grants = ["log/1"]
max_memory_mib = 512
max_threads = 100
"""
MEMORY = 512 << 20
THREADS = 100

SOCKET = pathlib.Path("/run/outrigger/rpc.sock")
LISTEN = f'listen = ["127.0.0.1:8337", "unix:{SOCKET}"]'

# A user whom a reload adds, and the same line with a mistake.
ADDED = f"""
[[rpc.users]]
rpcauth = "alice:0123456789abcdef${'0' * 64}"
"""
MISTAKE = ADDED.replace("rpcauth", "rpcaut")

NODE = """[Service]
User=bitcoin
StateDirectory=bitcoind
StateDirectoryMode=0710
ExecStart=/opt/bitcoind -regtest -datadir=/var/lib/bitcoind -server -listen=0 -connect=0 -printtoconsole=0 -rpccookieperms=group
"""

# How long to wait for what is about to be, in seconds: nothing of this machine is fast.
PATIENCE = 60


class Failed(Exception):
    """What did not hold, and what was seen instead."""


def holds(what, seen, is_so=None):
    """Says that it holds; `is_so` is by default that something was seen."""
    if not (seen if is_so is None else is_so):
        raise Failed(f"{what}; seen: {seen}")
    print(f"  {what}", flush=True)


def until(what, look):
    """What a look finds, once it finds something."""
    end = time.monotonic() + PATIENCE
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > end:
            raise Failed(f"not within {PATIENCE} s: {what}")
        time.sleep(0.05)


def run(*command, may_fail=False):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 and not may_fail:
        raise Failed(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done


class Service:
    """A unit with a host."""

    def __init__(self, name):
        self.name = name

    def call(self, method, *params, wallet=None):
        """A method's answer, or the number and text of its error."""
        of_wallet = ["--wallet", wallet] if wallet else []
        command = [PROGRAM, "call", "--datadir", "/var/lib/outrigger", *of_wallet, method, *map(str, params)]
        done = run(*command, may_fail=True)
        if done.returncode != 0:
            return done.stderr.strip()
        try:
            return json.loads(done.stdout)
        except json.JSONDecodeError:
            return done.stdout.strip()

    def property(self, name):
        return run("systemctl", "show", "--property", name, "--value", self.name).stdout.strip()

    def main(self):
        return int(self.property("MainPID"))


class Unit(Service):
    """One of the units, on a data directory of its own."""

    def __init__(self, name, configuration):
        super().__init__(name)
        self.group = GROUPS / name
        self.configuration = configuration.replace("\n[rpc]\n", f"\n[rpc]\n{LISTEN}\n") + HOSTILE
        shutil.rmtree("/var/lib/outrigger", ignore_errors=True)
        CONFIGS.mkdir(exist_ok=True)
        self.configure()
        shutil.copy(TRIAL / name, "/etc/systemd/system")
        run("systemctl", "daemon-reload")

    def configure(self, added=""):
        for file in ("outrigger.toml", "bitcoind.toml"):
            (CONFIGS / file).write_text(self.configuration + added)

    def plugins(self):
        return {plugin["id"]: plugin for plugin in self.call("listplugins")}

    def hostile(self):
        return self.plugins()["hostile"]

    def processes(self):
        """The processes of the unit, by the group that they are in."""
        groups = self.group.glob("**/cgroup.procs")
        return {file.parent.name: [int(pid) for pid in file.read_text().split()] for file in groups}

    def journal(self, since):
        run("journalctl", "--sync")
        return run("journalctl", "--unit", self.name, "--output=cat", "--no-pager", f"--since=@{since}").stdout

    def check(self, *restrictions):
        """What `run --check` says in the unit, with further restrictions; and whether the host could start."""
        folder = pathlib.Path(f"/run/systemd/system/{self.name}.d")
        folder.mkdir(parents=True)
        start = next(line for line in (TRIAL / self.name).read_text().splitlines() if line.startswith("ExecStart="))
        lines = ["[Service]", "Type=oneshot", "Restart=no", "ExecStart=", f"{start} --check", *restrictions]
        (folder / "check.conf").write_text("\n".join(lines) + "\n")
        run("systemctl", "daemon-reload")
        began = time.time()
        could = run("systemctl", "start", self.name, may_fail=True).returncode == 0
        said = self.journal(began)
        shutil.rmtree(folder)
        run("systemctl", "daemon-reload")
        run("systemctl", "reset-failed", self.name, may_fail=True)
        return could, said


def checked(unit):
    could, said = unit.check()
    holds("run --check: the sandbox is whole", said, could and "does not allow" not in said)
    holds("run --check: control groups are handed over", said, "a control group of its own bounds each" in said)
    could, said = unit.check("RestrictNamespaces=yes")
    told = "namespace" in said.partition("does not allow")[2]
    holds("with RestrictNamespaces=yes it names what the unit denies", said, could and told)
    could, said = unit.check("RestrictNamespaces=yes", "SystemCallFilter=~landlock_create_ruleset")
    told = "Landlock" in said.partition("does not allow")[2]
    holds("without Landlock too, the host could not start, and why is named", said, told and not could)


def started(unit):
    run("systemctl", "start", unit.name)
    holds("the unit is ready", unit.property("ActiveState"), unit.property("ActiveState") == "active")
    plugins = unit.plugins()
    holds("each plugin has a process of its own", plugins, all(plugin["isolated"] and plugin["pid"] for plugin in plugins.values()))
    lacking = {name: plugin["sandbox"].get("missing") for name, plugin in plugins.items()}
    holds(f"nothing is missing of the sandbox: {json.dumps(unit.hostile()['sandbox'])}", lacking, not any(lacking.values()))
    processes = unit.processes()
    holds("the host is in a group of its own", processes, processes.get("host") == [unit.main()] and not processes[unit.name])
    for name, plugin in plugins.items():
        group = [pids for group, pids in processes.items() if group.startswith(f"plugin-{name}-")]
        if group != [[plugin["pid"]]]:
            raise Failed(f"{name} has a group of its own; seen: {processes}")
    group = next(unit.group.glob("plugin-hostile-*"))
    bounds = {name: (group / name).read_text().strip() for name in ("memory.max", "memory.swap.max", "pids.max")}
    wanted = {"memory.max": str(MEMORY), "memory.swap.max": "0", "pids.max": str(THREADS)}
    holds("the kernel bounds a plugin's process as configured", bounds, bounds == wanted)


def works(unit):
    unit.call("createwallet", "w")
    address = unit.call("getnewaddress", wallet="w")
    holds("a wallet has an address", address, str(address).startswith("bcrt1"))
    unit.call("generatetoaddress", 1, address)
    seen = until("the wallet sees a block", lambda: (unit.call("getbalances", wallet="w")["mine"]["immature"] or None))
    holds("and sees what is mined to it", seen, seen == 50)


def reloaded(unit):
    """The calls of this trial come by the Unix socket, which `outrigger call` takes first."""
    mode = oct(SOCKET.stat().st_mode & 0o777)
    holds("the Unix socket is the operator's alone", mode, mode == "0o600")
    began, main = time.time(), unit.main()
    unit.configure(ADDED)
    run("systemctl", "reload", unit.name)
    journal = unit.journal(began)
    holds("systemctl reload takes a user on", journal, "rpc.users: 'alice' was added" in journal)
    unit.configure(MISTAKE)
    failed = run("systemctl", "reload", unit.name, may_fail=True).returncode != 0
    journal = unit.journal(began)
    holds("and fails for a mistake, which the journal names", journal, failed and "rpcaut" in journal)
    unit.configure()
    run("systemctl", "reload", unit.name)
    seen = (unit.main(), unit.property("ActiveState"))
    holds("the host is the same", seen, seen == (main, "active"))


def attacked(unit):
    began = time.time()
    attempts = (("hostileread", "/etc/shadow"), ("hostileread", f"/proc/{unit.main()}/mem"), ("hostileconnect", "127.0.0.1:22"))
    for method, argument in attempts:
        refused = unit.call(method, argument)
        holds(f"{method} {argument} is refused", refused, "-90" in str(refused))
    denied = unit.hostile()["denied"]["by_kind"]
    holds(f"listplugins tells of it: {json.dumps(denied)}", denied, {"open", "socket"} <= set(denied))
    journal = unit.journal(began)
    holds("the journal too", journal, "/etc/shadow" in journal and "socket family" in journal)


def crashed(unit):
    main = unit.main()
    for what, crash, word in (
        ("a crash", lambda: unit.call("hostilecrash"), "SIGSEGV"),
        ("a process that is killed", lambda: os.kill(unit.hostile()["pid"], signal.SIGKILL), "SIGKILL"),
        ("a process that wants more memory", lambda: unit.call("hostilememory", 2000), "max_memory_mib"),
        ("a process that fills page tables", lambda: unit.call("hostiletables", 400), "max_memory_mib"),
    ):
        crashes = unit.hostile()["crashes"]
        crash()
        until("it is told", lambda: unit.hostile()["crashes"] == crashes + 1)
        last = unit.hostile()["last_crash"]
        holds(f"{what} is told: {json.dumps(last)}", last, word in last["ending"])
        again = unit.call("hostilenothing")
        holds("and the next process answers", again or "nothing", again in (None, "", "null"))
    seen = (unit.main(), unit.property("NRestarts"))
    holds("the host is the same", seen, seen == (main, "0"))


def alive(pids):
    return [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]


def host_killed(unit):
    before = [pid for pids in unit.processes().values() for pid in pids]
    os.kill(unit.main(), signal.SIGKILL)
    killed = time.monotonic()
    runners = [pid for pid in before if pid != unit.main()]
    until("all processes are gone", lambda: not alive(before))
    holds(f"a host that is killed takes {len(runners)} processes with it", runners)
    print(f"    within {time.monotonic() - killed:.2f} s")
    until("it is back", lambda: unit.property("ActiveState") == "active" and unit.property("NRestarts") == "1")
    plugins = unit.plugins()
    processes = unit.processes()
    holds("and is back, with a process for each plugin and no others", processes, sum(map(len, processes.values())) == 1 + len(plugins))
    if "w" not in unit.call("listwallets"):
        unit.call("loadwallet", "w")
    seen = unit.call("getbalances", wallet="w")["mine"]["immature"]
    holds("and with its wallet", seen, seen == 50)


def stopped(unit):
    before = [pid for pids in unit.processes().values() for pid in pids]
    began, clock = time.time(), time.monotonic()
    run("systemctl", "stop", unit.name)
    took = time.monotonic() - clock
    seen = (unit.property("Result"), unit.property("ActiveState"))
    holds(f"the unit stops in order, after {took:.1f} s", seen, seen == ("success", "inactive"))
    holds("no process is left, and no group", before, not alive(before) and not unit.group.exists())
    journal = unit.journal(began)
    holds("nothing is told of an end of a plugin that nobody wanted", journal, "has ended" not in journal and "ERROR" not in journal)


def try_out(unit):
    print(unit.name, flush=True)
    began = time.time()
    try:
        for part in (checked, started, works, reloaded, attacked, crashed, host_killed, stopped):
            part(unit)
        return True
    except Exception as error:  # pylint: disable=broad-except
        print(f"FAILED: {error if isinstance(error, Failed) else traceback.format_exc()}")
        print("\n".join(unit.journal(began).splitlines()[-60:]), flush=True)
        run("systemctl", "stop", unit.name, may_fail=True)
        return False


def upgraded():
    """Upgrades the package while its unit runs, and purges it. Leaves the user and the data directory."""
    print("the package", flush=True)
    unit = Service("outrigger.service")
    try:
        run("dpkg", "--install", TRIAL / "old.deb")
        run("systemctl", "start", unit.name)
        unit.call("createwallet", "wallet_name=w", "load_on_startup=true")
        before = unit.main()
        run("dpkg", "--install", TRIAL / "new.deb")
        holds("an upgrade starts the running unit anew", unit.property("ActiveState"), unit.property("ActiveState") == "active")
        after = unit.main()
        program = os.readlink(f"/proc/{after}/exe")
        holds("with the new program", (before, after, program), after not in (0, before) and program == PROGRAM)
        holds("and with its wallet", unit.call("listwallets"), unit.call("listwallets") == ["w"])
        run("dpkg", "--remove", "outrigger")
        holds("a removal stops it", after, not alive([after]))
        run("dpkg", "--purge", "outrigger")
        return True
    except Exception as error:  # pylint: disable=broad-except
        print(f"FAILED: {error if isinstance(error, Failed) else traceback.format_exc()}")
        print(run("journalctl", "--unit", unit.name, "--output=cat", "--no-pager", "--lines=60").stdout, flush=True)
        return False
    finally:
        run("systemctl", "stop", unit.name, may_fail=True)
        run("dpkg", "--purge", "outrigger", may_fail=True)
        shutil.rmtree(CONFIGS, ignore_errors=True)


def everyone_isolated(file):
    """A configuration in which every plugin has a process of its own, the trusted ones too."""
    text = (TRIAL / file).read_text()
    if "[plugin_defaults]" in text:
        return text.replace('isolated = "untrusted"', 'isolated = "all"')
    return text + '\n[plugin_defaults]\nisolated = "all"\n'


def with_node():
    """Starts bitcoind as its unit would, and configures the host as the page of the unit for it says."""
    run("useradd", "--system", "--no-create-home", "--user-group", "bitcoin")
    folder = TRIAL / "bitcoind/usr"
    loader = next(folder.rglob("ld-linux-*.so.2"))
    libraries = next(folder.rglob("libc.so.6")).parent
    starter = pathlib.Path("/opt/bitcoind")
    starter.write_text(f'#!/bin/sh\nexec {loader} --library-path {libraries} {folder}/bin/bitcoind "$@"\n')
    starter.chmod(0o755)
    pathlib.Path("/etc/systemd/system/bitcoind.service").write_text(NODE)
    run("systemctl", "daemon-reload")
    run("systemctl", "start", "bitcoind")
    chain = pathlib.Path("/var/lib/bitcoind/regtest")
    until("the node writes its cookie", (chain / ".cookie").exists)
    chain.chmod(chain.stat().st_mode | 0o010)
    config = everyone_isolated("bitcoind.toml").replace('network = "main"', 'network = "regtest"')
    config = config.replace('url = "http://127.0.0.1:8332"', 'url = "http://127.0.0.1:18443"')
    return config.replace('cookie = "~/.bitcoin/.cookie"', f'cookie = "{chain}/.cookie"')


def main():
    release = run("systemctl", "--version").stdout.splitlines()[0]
    print(f"{release}, Linux {os.uname().release}", flush=True)
    results = [upgraded()] if (TRIAL / "new.deb").is_file() else []
    shutil.copytree(TRIAL / "outrigger", "/usr/lib/outrigger", dirs_exist_ok=True)
    shutil.move("/usr/lib/outrigger/outrigger", PROGRAM)
    # The package does these two, and its removal leaves the user.
    run("useradd", "--system", "--no-create-home", "--user-group", "outrigger", may_fail=True)
    SOCKET.parent.mkdir(exist_ok=True)
    shutil.chown(SOCKET.parent, "outrigger", "outrigger")
    results.append(try_out(Unit("outrigger.service", everyone_isolated("regtest.toml"))))
    if (TRIAL / "bitcoind").is_dir():
        results.append(try_out(Unit("outrigger-bitcoind.service", with_node())))
    print("all of it holds" if all(results) else "not all of it holds", flush=True)


if __name__ == "__main__":
    main()

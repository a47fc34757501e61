"""Brings the clients here by their ordinary package managers, into a folder of their own: nothing of the system changes."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent

# What stands in a client's folder once it is whole: the versions it was installed with.
STAMP = "installed"

# How long a package manager may take for one step, in seconds.
PATIENCE = 900


class NotInstalled(Exception):
    """Why a client is not here: no package manager, or one that does not reach its packages."""


def default_prefix():
    """The folder for all clients, kept between runs."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "outrigger-clients"


def program(name):
    path = shutil.which(name)
    if path is None:
        raise NotInstalled(f"no {name}")
    return path


def attempt(arguments, **options):
    """Runs a package manager; its last words say why it failed."""
    name = pathlib.Path(arguments[0]).name
    try:
        done = subprocess.run(
            [str(argument) for argument in arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE,
            **options,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{name}: {error}") from error
    if done.returncode != 0:
        said = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        # npm ends with the name of its log, whatever happened.
        telling = [line for line in said if re.search(r"error|could not|fail|unable", line, re.IGNORECASE)]
        why = (telling or said or ["no message"])[-1]
        raise NotInstalled(f"{name}: {why}")
    return done.stdout


def once(folder, versions, install):
    """Fills a folder unless it holds these versions already. A folder that was left half filled is begun anew."""
    stamp = folder / STAMP
    if stamp.is_file() and stamp.read_text() == versions:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    install(folder)
    stamp.write_text(versions)
    return folder


def sources_of(suite):
    """The system's own package sources, for another suite of the same archive."""
    modern = pathlib.Path("/etc/apt/sources.list.d/debian.sources")
    classic = pathlib.Path("/etc/apt/sources.list")
    if modern.is_file():
        kept = [part for part in re.split(r"\n\s*\n", modern.read_text()) if part.strip() and "security" not in part]
        return ".sources", "\n\n".join(re.sub(r"(?m)^Suites:.*$", f"Suites: {suite}", part) for part in kept) + "\n"
    if not classic.is_file():
        raise NotInstalled("no Debian package sources")
    lines = [line for line in classic.read_text().splitlines() if re.match(r"deb\s", line) and "security" not in line]
    if not lines:
        raise NotInstalled("no Debian package sources")
    return ".list", re.sub(r"(?m)^(deb\s+(?:\[[^]]*\]\s+)?\S+\s+)\S+", rf"\g<1>{suite}", lines[0]) + "\n"


def bitcoin_cli(prefix):
    """bitcoin-cli 29 of Debian's unstable suite, unpacked with the libraries it was linked with, the C library too."""

    def install(folder):
        apt, unpack = program("apt-get"), program("dpkg-deb")
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            for name in ("lists/partial", "cache", "debs/partial"):
                (work / name).mkdir(parents=True)
            suffix, sources = sources_of("sid")
            (work / f"own{suffix}").write_text(sources)
            settings = {
                "Dir::Etc::sourcelist": work / f"own{suffix}",
                "Dir::Etc::sourceparts": "/dev/null",
                "Dir::State::lists": work / "lists",
                "Dir::State::status": "/dev/null",
                "Dir::Cache": work / "cache",
                "Dir::Cache::archives": work / "debs",
                "Acquire::Retries": "1",
                "APT::Install-Recommends": "false",
            }
            if os.geteuid() == 0:
                settings["APT::Sandbox::User"] = "root"
            options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
            attempt([apt, *options, "-qq", "--error-on=any", "update"])
            attempt([apt, *options, "-qq", "--yes", "--download-only", "install", "bitcoin-knots"])
            for package in sorted((work / "debs").glob("*.deb")):
                attempt([unpack, "--extract", package, folder / "unpacked"])
        loader = next((folder / "unpacked").rglob("ld-linux-*.so.2"), None)
        library = next((folder / "unpacked").rglob("libc.so.6"), None)
        if loader is None or library is None or not (folder / "unpacked/usr/bin/bitcoin-cli").is_file():
            raise NotInstalled("the packages hold no bitcoin-cli")
        # The node comes in the same package: the end-to-end tests stand in front of it.
        for program_name in ("bitcoin-cli", "bitcoind"):
            starter = folder / program_name
            starter.write_text(
                f'#!/bin/sh\nexec "{loader}" --library-path "{library.parent}" "{folder}/unpacked/usr/bin/{program_name}" "$@"\n'
            )
            starter.chmod(0o755)
            attempt([starter, "--version"])

    return once(prefix / "bitcoin-cli", "bitcoin-knots of sid, unpacked, with bitcoind\n", install) / "bitcoin-cli"


def python(prefix, name="python", requirements="requirements.txt"):
    """An interpreter with Python clients, of the versions in a file."""
    requirements = HERE / requirements

    def install(folder):
        try:
            venv.create(folder, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotInstalled(f"no virtual environment: {error}") from error
        pip = [folder / "bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
        attempt([*pip, "install", "--retries", "1", "--timeout", "20", "--requirement", requirements])

    versions = f"{sys.version}\n{requirements.read_text()}"
    return once(prefix / name, versions, install) / "bin/python"


def servers(prefix):
    """An interpreter with Specter Desktop and ElectrumX, which need many packages."""
    return python(prefix, "servers", "requirements-servers.txt")


def node(prefix):
    """The folder with the clients for Node.js, of the versions in package-lock.json."""
    files = [HERE / "node/package.json", HERE / "node/package-lock.json"]

    def install(folder):
        program("node")
        npm = program("npm")
        for file in files:
            shutil.copy(file, folder)
        # Nothing that these packages would build or run at their installation is needed.
        attempt([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"], cwd=folder)

    return once(prefix / "node", "".join(file.read_text() for file in files), install)


def built(name, target, profile):
    """A session in Rust, built beside the host and with its profile, so that most crates are built already."""
    cargo = os.environ.get("CARGO") or program("cargo")
    manifest = HERE / name / "Cargo.toml"
    environment = os.environ | {"CARGO_NET_RETRY": "1"}
    attempt([cargo, "fetch", "--locked", "--manifest-path", manifest], env=environment)
    arguments = ["build", "--quiet", "--locked", "--manifest-path", manifest, "--target-dir", target]
    done = subprocess.run([cargo, *arguments, *(["--release"] if profile == "release" else [])], check=False)
    if done.returncode != 0:
        # The packages are here; that it does not build is our mistake.
        raise RuntimeError(f"the session in tests/clients/{name} does not build")
    return pathlib.Path(target) / profile / f"{name}-session"


# Clients that are built from their crates, which takes minutes.
BUILT_FROM_CRATES = ("Liana", "payjoin-cli", "ord")


def crate(prefix, name, version, program_name, *features):
    """A program of a Rust crate, built without optimisation."""

    def install(folder):
        cargo = os.environ.get("CARGO") or program("cargo")
        with tempfile.TemporaryDirectory() as work:
            arguments = ["install", "--quiet", "--debug", "--locked", "--root", folder, "--target-dir", work]
            attempt([cargo, *arguments, "--version", version, name, *features], env=os.environ | {"CARGO_NET_RETRY": "1"})

    return once(prefix / name, f"{name} {version} {' '.join(features)}\n", install) / "bin" / program_name


def liana(prefix):
    return crate(prefix, "liana", "5.0.0", "lianad")


def payjoin(prefix):
    return crate(prefix, "payjoin-cli", "1.0.0", "payjoin-cli", "--no-default-features", "--features", "v1")


def ordinals(prefix):
    return crate(prefix, "ord", "0.29.1", "ord")


# Programs of the system, and the packages of Debian that have them. Tests that need a missing one are skipped.
OF_THE_SYSTEM = {
    "nginx": "nginx",
    "haproxy": "haproxy",
    "caddy": "caddy",
    "promtool": "prometheus",
    "chromium": "chromium",
    "mmdebstrap": "mmdebstrap",
    "lintian": "lintian",
    "minisign": "minisign",
    "podman": "podman",
    "crun": "crun",
    "iptables": "iptables",
}

# Debian asks it before a package starts a service.
POLICY = pathlib.Path("/usr/sbin/policy-rc.d")


def of_the_system(_prefix):
    missing = [package for name, package in OF_THE_SYSTEM.items() if shutil.which(name) is None]
    if missing:
        apt = program("apt-get")
        starts = not POLICY.exists()
        try:
            if starts:
                POLICY.write_text("#!/bin/sh\nexit 101\n")
                POLICY.chmod(0o755)
            attempt([apt, "-qq", "update"])
            attempt([apt, "-qq", "install", "--yes", "--no-install-recommends", *missing])
        except OSError as error:
            raise NotInstalled(str(error)) from error
        finally:
            if starts:
                POLICY.unlink(missing_ok=True)
    return ", ".join(OF_THE_SYSTEM)

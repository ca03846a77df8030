"""A Spark cluster of this machine: a master and workers on loopback, with a secret, that end with their `with`."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark

from .lifetime import end_with_parent

HOME = Path(pyspark.__file__).parent
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
SETTINGS = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.executor.memory": "1g",
    "spark.driver.memory": "1g",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "4",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where its master listens, and its workers."""

    master: str
    workers: list[subprocess.Popen[bytes]]
    logs: Path

    def kill(self, number: int) -> None:
        """Ends a worker and its executors at once, as a machine that loses power."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)


def environment(folder: Path) -> dict[str, str]:
    """Of all its processes; the secret is in a file of this user alone."""
    settings = SETTINGS | {
        "spark.authenticate.secret": secrets.token_hex(16),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    conf = folder / "conf"
    conf.mkdir(mode=0o700)
    (conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return os.environ | {
        "SPARK_HOME": str(HOME),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join(f"-D{name}={value}" for name, value in settings.items()),
        "SPARK_WORKER_DIR": str(folder / "work"),
    }


def started(name: str, words: list[str], folder: Path, env: dict[str, str], log: str) -> subprocess.Popen[bytes]:
    """A process of the cluster in a process group of its own."""
    command = [str(HOME / "bin" / "spark-class"), name, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with (folder / log).open("wb") as output:
        return subprocess.Popen(
            [*command, *words],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )


def awaited(log: Path, pattern: str, seconds: float = 120) -> str:
    """What a process says in its log once it is ready."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.2)
    raise TimeoutError(f"{log} does not say {pattern}:\n{log.read_text(errors='replace')[-2000:]}")


@contextlib.contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Starts it; sets the environment that a driver of this process needs."""
    env = environment(folder)
    os.environ.update({name: env[name] for name in ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_IP")})
    running = [started(MASTER, [], folder, env, "master.log")]
    try:
        master = awaited(folder / "master.log", r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            words = ["--cores", "1", "--memory", "1g", master]
            running.append(started(WORKER, words, folder, env, f"worker{number}.log"))
        for number in range(workers):
            awaited(folder / f"worker{number}.log", r"Successfully registered with master (spark://\S+)")
        yield Cluster(master, running[1:], folder)
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
